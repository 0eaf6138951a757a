package owner_test

import data.router.custom

pod(labels) := {
	"request": {"operation": "CREATE", "namespace": "tenants", "date": "2026-01-01"},
	"namespace": {"name": "tenants", "labels": {"runtimeclass-router.io/trust": "untrusted"}, "annotations": {}},
	"pod": {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}

test_owner_is_required if count(custom.denials) == 1 with input as pod({})

test_owner_is_enough if count(custom.denials) == 0 with input as pod({"example.com/owner": "search"})
