package policies

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Request is what policies read as input.request.
type Request struct {
	Operation   string                    `json:"operation"`
	SubResource string                    `json:"subResource"`
	Namespace   string                    `json:"namespace"`
	Name        string                    `json:"name"`
	UserInfo    authenticationv1.UserInfo `json:"userInfo"`
	DryRun      bool                      `json:"dryRun"`
	// Date is the UTC day of the request, as 2006-01-02. It is the only time that
	// a policy knows: an admission review carries none.
	Date string `json:"date"`
}

// Input is what a policy decides on.
type Input struct {
	Request   Request
	Namespace catalog.Namespace
	Pod       *Pod
}
