package router

decision := {"action": "route", "trust": "untrusted", "runtimeClassName": "gvisro"}
