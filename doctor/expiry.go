package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// How long before its end something is warned of. The product renews its certificate 30
// days before, and its CA a year: what is left to the last days was not renewed.
const (
	exceptionNotice   = 14 * 24 * time.Hour
	caNotice          = 30 * 24 * time.Hour
	certificateNotice = 14 * 24 * time.Hour
)

var expiryChecks = []Check{
	{"policy", []Need{needSettings}, "the policy of the release was read, and loads", faultyPolicy},
	{"exceptions", []Need{needSettings}, "no exception has expired, or does soon", exceptions},
	{"ca-bundle", []Need{needWebhooks}, "the API server is given a CA that is valid for a while", caBundles},
	{"certificate", []Need{needSecret}, "the webhook's certificate is valid for a while", certificate},
}

// faultyPolicy: the one before stays in force, and a replica that starts has none.
func faultyPolicy(_ context.Context, c *Cluster) ([]Finding, error) {
	if fault, ok := c.lacks[needPolicy]; ok {
		return []Finding{{Severity: Error, Message: fault.message, Next: fault.next}}, nil
	}
	return nil, nil
}

func exceptions(_ context.Context, c *Cluster) ([]Finding, error) {
	var found []Finding
	today := c.Now.UTC().Format(time.DateOnly)
	soon := c.Now.UTC().Add(exceptionNotice).Format(time.DateOnly)
	for i := range c.config.Exceptions {
		e := &c.config.Exceptions[i]
		f := Finding{
			Severity: Warning, Object: "exception/" + e.Name,
			Next: fmt.Sprintf("helm get values %s --namespace %s", c.Release.Name, c.Release.Namespace),
		}
		switch {
		case e.Until < today:
			f.Message = fmt.Sprintf("expired on %s, and its pods are judged as any: remove it from router.exceptions, or ask %s (%s)", e.Until, e.Owner, e.Ticket)
		case e.Until <= soon:
			f.Message = fmt.Sprintf("ends on %s: move its pods before, or ask %s (%s)", e.Until, e.Owner, e.Ticket)
		default:
			continue
		}
		found = append(found, f)
	}
	return found, nil
}

// caBundles looks at each bundle once: all webhooks have the same as a rule.
func caBundles(_ context.Context, c *Cluster) ([]Finding, error) {
	var found []Finding
	seen := map[string]bool{}
	for _, h := range c.hooks() {
		bundle := h.client.CABundle
		if seen[string(bundle)] {
			continue
		}
		seen[string(bundle)] = true
		f := Finding{Object: h.object}
		if len(bundle) == 0 && h.client.Service == nil {
			continue // a URL, and the CAs of the system
		}
		var last time.Time
		for _, cert := range parse(bundle) {
			if cert.NotAfter.After(last) {
				last = cert.NotAfter
			}
		}
		switch {
		case last.IsZero():
			f.Severity, f.Next = Error, c.logs()
			f.Message = fmt.Sprintf("%s has no CA: the API server accepts no certificate of the webhook", h.name)
		case last.Before(c.Now):
			f.Severity, f.Next = Error, c.renewCA()
			f.Message = fmt.Sprintf("the CA of %s expired on %s: the API server accepts no certificate of the webhook", h.name, last.UTC().Format(time.DateOnly))
		case last.Before(c.Now.Add(caNotice)):
			f.Severity, f.Next = Warning, c.renewCA()
			f.Message = fmt.Sprintf("the CA of %s expires on %s", h.name, last.UTC().Format(time.DateOnly))
		default:
			continue
		}
		found = append(found, f)
	}
	return found, nil
}

// renewCA has the product make another CA, where it makes its own.
func (c *Cluster) renewCA() string {
	if !c.selfSigned {
		return fmt.Sprintf("kubectl describe secret %s --namespace %s", c.secretName, c.Release.Namespace)
	}
	return fmt.Sprintf("kubectl patch secret %s --namespace %s --type=json --patch=[{\"op\":\"remove\",\"path\":\"/data/ca.key\"}]", c.secretName, c.Release.Namespace)
}

func certificate(_ context.Context, c *Cluster) ([]Finding, error) {
	f := Finding{Severity: Error, Object: "secret/" + c.Release.Namespace + "/" + c.secretName, Next: c.logs()}
	if c.secret == nil {
		f.Message, f.Next = "is not there", c.helm()
		return []Finding{f}, nil
	}
	chain := parse(c.secret.Data[corev1.TLSCertKey])
	if len(chain) == 0 {
		f.Message = "holds no certificate: no replica has made one, or somebody else has yet to"
		return []Finding{f}, nil
	}
	switch end := chain[0].NotAfter; {
	case end.Before(c.Now):
		f.Message = fmt.Sprintf("the certificate expired on %s, and nobody has renewed it", end.UTC().Format(time.DateOnly))
	case end.Before(c.Now.Add(certificateNotice)):
		f.Severity = Warning
		f.Message = fmt.Sprintf("the certificate expires on %s, and nobody has renewed it", end.UTC().Format(time.DateOnly))
	default:
		return c.vouched(chain, f), nil
	}
	return []Finding{f}, nil
}

// vouched finds webhooks whose caBundle does not vouch for the certificate.
func (c *Cluster) vouched(chain []*x509.Certificate, f Finding) []Finding {
	intermediates := x509.NewCertPool()
	for _, cert := range chain[1:] {
		intermediates.AddCert(cert)
	}
	for _, h := range c.hooks() {
		if len(h.client.CABundle) == 0 || h.client.Service == nil {
			continue
		}
		roots := x509.NewCertPool()
		for _, cert := range parse(h.client.CABundle) {
			roots.AddCert(cert)
		}
		name := h.client.Service.Name + "." + h.client.Service.Namespace + ".svc"
		if _, err := chain[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: intermediates, CurrentTime: c.Now}); err != nil {
			f.Message = fmt.Sprintf("the caBundle of %s does not vouch for the certificate: %v", h.name, err)
			return []Finding{f}
		}
	}
	return nil
}

// parse returns the certificates of a PEM document.
func parse(bundle []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return found
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, cert)
		}
	}
}
