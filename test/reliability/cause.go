package main

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// cause is why a pod was not created.
type cause int

const (
	// ours is every cause that nothing excuses.
	ours cause = iota
	// apiServer is the API server's: it does not listen, ends, or starts.
	apiServer
	// broken is a connection to a replica that broke, or was not accepted: the API server
	// called, and got no answer.
	broken
)

// brokenCall is how net/http tells it.
var brokenCall = []string{"EOF", "connection reset by peer", "broken pipe", "connection refused"}

// causeOf reads it from what the client was told.
func causeOf(err error) cause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		var failed *url.Error
		if errors.As(err, &failed) && !failed.Timeout() {
			return apiServer
		}
		return ours
	}
	s := status.Status()
	switch {
	case strings.Contains(s.Message, "failed calling webhook"):
		for _, end := range brokenCall {
			if strings.HasSuffix(s.Message, end) {
				return broken
			}
		}
		return ours
	case s.Code == http.StatusServiceUnavailable, strings.HasSuffix(s.Message, "not yet ready to handle request"):
		return apiServer
	default:
		return ours
	}
}
