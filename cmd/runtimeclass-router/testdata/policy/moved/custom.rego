package router.custom

denials contains "jobs of the first release are not run any more" if {
	input.pod.metadata.labels["example.com/shape"] == "job"
}

candidates contains ["kata-qemu", "gvisor"] if {
	input.pod.metadata.labels["example.com/shape"] == "database"
}
