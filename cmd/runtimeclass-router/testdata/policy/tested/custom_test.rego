package custom_test

import data.router.custom

test_that_passes if count(custom.denials) == 1 with input as {"request": {"namespace": "a"}, "pod": {"spec": {"hostNetwork": true}}}

test_that_fails if count(custom.denials) == 2 with input as {"request": {"namespace": "a"}, "pod": {"spec": {"hostNetwork": true}}}

todo_test_that_is_to_come if false
