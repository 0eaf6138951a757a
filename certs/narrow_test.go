package certs

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSelector(t *testing.T) {
	t.Parallel()
	const secrets = "/api/v1/namespaces/router/secrets"
	for name, test := range map[string]struct{ method, target, want string }{
		"list":                 {http.MethodGet, secrets + "?limit=500", "fieldSelector=metadata.name%3Dtls&limit=500"},
		"watch":                {http.MethodGet, secrets + "?watch=true", "fieldSelector=metadata.name%3Dtls&watch=true"},
		"behind a prefix":      {http.MethodGet, "/clusters/c1" + secrets, "fieldSelector=metadata.name%3Dtls"},
		"get":                  {http.MethodGet, secrets + "/tls", ""},
		"update":               {http.MethodPut, secrets + "/tls", ""},
		"create":               {http.MethodPost, secrets, ""},
		"another namespace":    {http.MethodGet, "/api/v1/namespaces/other/secrets", ""},
		"another kind":         {http.MethodGet, "/api/v1/namespaces/router/configmaps", ""},
		"a field of their own": {http.MethodGet, secrets + "?fieldSelector=type%3DOpaque", "fieldSelector=metadata.name%3Dtls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequestWithContext(t.Context(), test.method, test.target, nil)
			before := request.URL.String()
			var got string
			s := &selector{names: map[string]string{secrets: "tls"}, next: roundTripper(func(r *http.Request) (*http.Response, error) {
				got = r.URL.RawQuery
				return nil, nil
			})}
			if _, err := s.RoundTrip(request); err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("query %q, want %q", got, test.want)
			}
			if after := request.URL.String(); after != before {
				t.Errorf("the caller's request became %s", after)
			}
		})
	}
}
