"""Names that several places must agree on; fltutils.claims and papermill write the first four."""

CLAIM = "application/vnd.fltutils.claim+json"
EXERCISE = "application/vnd.fltutils.exercise+json"
GLUE = "application/papermill.record/"
INJECTED = "injected-parameters"
OWN_TYPES = "application/vnd.fltutils."  # for tools and tests, not for readers
BRANCH = "published"  # the notebooks that Colab opens lie there
GENERATED = "book/_generated"  # committed files that tools write
