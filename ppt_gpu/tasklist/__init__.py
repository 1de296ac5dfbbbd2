"""Task lists: `model` (what they are), `text` (the .tl format), `flat` (loops expanded, addresses), `graph` (measures).

This file imports nothing, so that the command line starts fast; import from the modules.
"""
