package remote

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer t")
	return r
}

func TestCheckRedirect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from, to string
		hops     int
		refused  string
		kept     bool // the credentials
	}{
		"to the same server":     {"https://a/x", "https://a/y", 1, "", true},
		"to another server":      {"https://a/x", "https://b/x", 1, "", false},
		"to another port":        {"https://a/x", "https://a:8443/x", 1, "", false},
		"out of TLS":             {"https://a/x", "http://a/x", 1, "unencrypted", false},
		"into TLS":               {"http://a/x", "https://a/x", 1, "", true},
		"in a circle":            {"https://a/x", "https://a/x", 10, "10 redirects", false},
		"where it always was so": {"http://a/x", "http://a/y", 1, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var via []*http.Request
			for range test.hops {
				via = append(via, request(t, test.from))
			}
			next := request(t, test.to)
			err := CheckRedirect(next, via)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			if kept := next.Header.Get("Authorization") != ""; err != nil || kept != test.kept {
				t.Errorf("%v, credentials kept: %t", err, kept)
			}
		})
	}
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  string
		err   string
	}{
		"token":               {map[string]string{"token": "t0ken\n"}, "Bearer t0ken", ""},
		"the token wins":      {map[string]string{"token": "t", "username": "u", "password": "p"}, "Bearer t", ""},
		"a name and password": {map[string]string{"username": "u", "password": "p\n"}, "Basic dTpw", ""},
		"a name alone":        {map[string]string{"username": "u"}, "", "need the file token, or username and password"},
		"nothing":             {nil, "", "need the file token, or username and password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			for file, content := range test.files {
				if err := os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := request(t, "https://a")
			r.Header.Del("Authorization")
			err := Access{CredentialsDirectory: directory}.Authorize(r)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || r.Header.Get("Authorization") != test.want {
				t.Errorf("%q, %v", r.Header.Get("Authorization"), err)
			}
		})
	}
}

func TestTransportWithoutItsCA(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".not"} {
		if _, err := (Access{CAFile: file}).Transport(); err == nil || !strings.Contains(err.Error(), "read the CA") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestValidateURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://a/b": "", "oci://a/b:c": "", "ftp://a": "want https://, http:// or oci://", "https:///b": "names no host",
		"http://a": "unencrypted", "https://u:hunter2@a": "Forbidden", "://": "is no URL",
	} {
		_, errs := Access{CredentialsDirectory: "/c"}.ValidateURL(field.NewPath("url"), address, "oci")
		if (want == "") != (len(errs) == 0) || len(errs) > 0 && (!strings.Contains(errs[0].Error(), want) || strings.Contains(errs[0].Error(), "hunter2")) {
			t.Errorf("%s: %v, want %q", address, errs, want)
		}
	}
}
