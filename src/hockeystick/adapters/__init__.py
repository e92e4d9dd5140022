"""Adapters: hockeystick behind the interfaces of other libraries. This package imports none of them; its modules do."""
