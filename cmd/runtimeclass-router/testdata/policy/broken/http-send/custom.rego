package router.custom

denials contains "the image is not on the list" if {
	answer := http.send({"method": "GET", "url": "https://images.example.com/list"})
	not input.pod.spec.containers[0].image in answer.body
}
