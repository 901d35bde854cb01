"""Plugins for every test and for nbval: private kernels, pictures compared."""

pytest_plugins = ["tools.kernels", "tools.pictures_alike"]
