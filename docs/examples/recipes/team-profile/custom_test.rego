package custom_test

import data.router.custom

asked(team) := {
	"request": {"operation": "CREATE", "namespace": "ci", "date": "2026-01-01"},
	"namespace": {"name": "ci", "labels": {"runtimeclass-router.io/trust": "untrusted", "example.com/team": team}, "annotations": {}},
	"pod": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}

test_a_team_with_a_profile if custom.profiles == {"syscall-heavy"} with input as asked("build")

test_a_team_without_one if count(custom.profiles) == 0 with input as asked("shop")
