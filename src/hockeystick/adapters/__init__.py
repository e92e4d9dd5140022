"""Adapters: hockeystick behind the interfaces of other libraries. Each module imports its library; this package imports none."""
