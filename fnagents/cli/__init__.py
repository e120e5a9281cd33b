"""The command line: `fnagents run`, `show`, `replay`, `verify`, `seal`, `schema`.

main.py is the entry; a command is a function from its arguments to a `Report`, and `main` alone prints reports.  What a
person watches and is asked goes to stderr, results go to stdout.
"""
