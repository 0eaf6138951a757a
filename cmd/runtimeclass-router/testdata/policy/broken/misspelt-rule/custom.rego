package router.custom

import data.router.trust

denials contains "no" if {
	input.pod.spec.hostNetwork
	trust.levle.name == "untrusted"
}

denials contains "not here" if data.router.trsut.level.name == "untrusted"
