"""Build-time programs of the live labs: `python -m tools.labs build | figures | describe`.

A lab is a model, a configuration in book/labs and one line in a chapter. A model is a few steps,
pure torch functions that are compiled to JavaScript together with the package's functions that they
call: a page runs the package's own formulas, on a leading run axis of size one, or of two where
networks are compared.

A step maps named tensors to a dict of named tensors. Names connect everything: an argument is a
parameter, a random array (`draws`) or what an earlier step returned, and what a step returns
replaces the value of that name. A name with no entry in `draws` or `state` is a number. `init` runs
once, `step` every step, `measure` at every record. For the sake of the compiler a step has

    no branches on data, nothing in place, no constant tensors
    float64 only: torch.where(c, 1.0, 0.0) is float32, c.to(x.dtype) is not
    sizes to trace with that differ pairwise and are at least 3; 1 would be another program
    a number in place of a size that never changes: `2 h k`

Each random array has an sfc32 stream of its own, from `seed` and its place among the draws, and is
filled row by row, so that more samples keep the first ones. Its law is `uniform`, `normal`, `lower`
(normal below the diagonal) or `chi` (entry i has `df` - i degrees of freedom). One that is `anew`
is drawn again after every step: flips and mini-batches need one uniform a sample and step.
"""
