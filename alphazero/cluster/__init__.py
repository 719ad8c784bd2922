"""A Ray cluster as a source of workers: the connection, the actors, and who may join.

Ray is imported when a cluster is opened, and by nobody else. This wing knows no games and no training: it keeps hosts
running, gives them calls, and hands their answers on.
"""
