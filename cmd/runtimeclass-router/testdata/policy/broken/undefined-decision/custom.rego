package router

decision := {"action": "deny", "trust": "untrusted", "reasons": ["the host's network"]} if input.pod.spec.hostNetwork
