"""Schemas: from a Python signature, a type or a hand-written JSON Schema to what is sent and to what reads it.

    strict.py      a schema's strict form: what is sent
    read.py        arguments judged by a hand-written schema
    signature.py   a function's parameters as a schema and a reader
    output.py      the type of a final output, likewise

Nothing is imported here: who needs one of them imports that one.
"""
