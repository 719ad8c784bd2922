"""A Ray cluster that plays the games of runs and tournaments: the connection, the hosts, and who may join.

Ray is imported when a cluster is opened, and by nobody else. Nothing but `api/extras.py` imports this wing; the
pool keeps hosts running, gives them calls and hands their answers on, and knows neither games nor training.
"""
