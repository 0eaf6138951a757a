package router

decision := {"action": "deny", "trust": "untrusted", "reason": ["not here"]}
