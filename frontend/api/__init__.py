"""The API's methods, one module each, named as the method, with one entry function of that name:
`async (frontend, request) -> response`. The request's namespace has been checked before (`frontend.namespace_checks`).
"""
