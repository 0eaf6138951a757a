package exceptions_test

import data.router.exceptions

asked(account, date) := {
	"request": {"operation": "CREATE", "namespace": "monitoring", "date": date},
	"namespace": {"name": "monitoring", "labels": {"runtimeclass-router.io/trust": "untrusted"}, "annotations": {}},
	"pod": {"metadata": {"name": "p"}, "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}},
}

test_the_last_day_is_included if count(exceptions.active) == 1 with input as asked("old-agent", "2026-01-31")

test_the_day_after_is_not if count(exceptions.active) == 0 with input as asked("old-agent", "2026-02-01")

test_another_account_is_not_covered if count(exceptions.active) == 0 with input as asked("default", "2026-01-01")
