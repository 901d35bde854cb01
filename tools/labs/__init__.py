"""Build-time programs of the live labs: the compiler from torch to JavaScript, and its replay."""
