package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

var scanNeeds = []Need{needPods, needNamespaces, needClasses, needNodes, needPolicy}

var workloadChecks = []Check{
	{"denied", scanNeeds, "no pod that is there would be denied if every namespace were enforced", denied},
	{"namespaces", scanNeeds, "no namespace without a trust label has pods that would be denied", namespacesFirst},
}

// scan is what the policy says of the pods that are there, as if every namespace were
// enforced.
type scan struct {
	refused map[owned]*refusal

	mu   sync.Mutex
	pods map[string]int // by namespace
}

// owned is what makes pods.
type owned struct{ namespace, owner string }

// refusal counts the pods of one owner that would be denied.
type refusal struct {
	pods   int
	now    bool   // its namespace is enforced already
	pod    string // the first of them
	reason string // why that one is

	first int
}

// scan reads the pods once, however many checks ask.
func (c *Cluster) scan(ctx context.Context) (*scan, error) {
	if c.scanned != nil {
		return c.scanned, nil
	}
	s := &scan{refused: map[owned]*refusal{}, pods: map[string]int{}}
	selection := c.selection()
	err := survey.Each(ctx, c.items(), func(ctx context.Context, position int, document *catalog.Document) error {
		return c.judge(ctx, s, &selection, position, document)
	})
	if err = cmp.Or(c.ended(), err); err != nil {
		return nil, err
	}
	c.scanned = s
	return s, nil
}

// selection is whose pods the webhook is asked about.
func (c *Cluster) selection() registration.Selection {
	for _, h := range c.deciding() {
		return registration.Select(h.selector)
	}
	return registration.Selection{Exempt: c.exempt}
}

func (c *Cluster) judge(ctx context.Context, s *scan, selection *registration.Selection, position int, document *catalog.Document) error {
	if document.GVK.Kind == "Pod" {
		next, err := survey.Recreate(document.Raw, c.catalog)
		if err != nil {
			return fmt.Errorf("%s: %w", survey.Place(document), err)
		}
		document.Raw = next.Raw
	}
	in, subject, err := survey.Read(document, c.namespaces, c.Now)
	if err != nil || in == nil || subject.Mirrors() {
		return err
	}
	if selection.Skips(subject.Namespace, in.Namespace.Labels, in.Pod.Labels) {
		return nil
	}
	enforced := *in
	labels := maps.Clone(in.Namespace.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[catalog.LabelMode] = string(policies.Enforce)
	enforced.Namespace.Labels = labels
	verdict, err := c.side.Verdict(ctx, &enforced)
	if err != nil {
		return subject.At(err)
	}
	now := &survey.Verdict{}
	if verdict.Denied {
		if now, err = c.side.Verdict(ctx, in); err != nil {
			return subject.At(err)
		}
	}
	s.count(position, subject, verdict, now.Denied)
	return nil
}

func (s *scan) count(position int, subject *survey.Subject, verdict *survey.Verdict, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[subject.Namespace]++
	if !verdict.Denied {
		return
	}
	key := owned{subject.Namespace, subject.Owner()}
	r := s.refused[key]
	if r == nil {
		r = &refusal{first: position + 1}
		s.refused[key] = r
	}
	r.pods++
	if position < r.first {
		r.first, r.now, r.reason = position, now, verdict.Reasons[0] // which stands alone
		r.pod = strings.ToLower(subject.Kind) + "/" + subject.Name
	}
}

// owners are what would be denied, in their order.
func (s *scan) owners() []owned {
	return slices.SortedFunc(maps.Keys(s.refused), func(a, b owned) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.owner, b.owner))
	})
}

// denied finds what would be denied; where it is enforced already, its next pod is.
func denied(ctx context.Context, c *Cluster) ([]Finding, error) {
	s, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, key := range s.owners() {
		r := s.refused[key]
		f := Finding{
			Severity: Warning, Object: key.namespace + "/" + key.owner,
			Message: fmt.Sprintf("would be denied (pods: %d): %s", r.pods, r.reason),
			Next:    fmt.Sprintf("runtimeclass-router why %s --namespace %s%s", r.pod, key.namespace, c.whyFlags),
		}
		if r.now {
			f.Severity = Error
			f.Message = fmt.Sprintf("its next pod is denied, today already (pods: %d): %s", r.pods, r.reason)
		}
		found = append(found, f)
	}
	return found, nil
}

// namespacesFirst finds namespaces that must be labelled before namespaces without a label
// are enforced.
func namespacesFirst(ctx context.Context, c *Cluster) ([]Finding, error) {
	s, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	owners, pods := map[string][]string{}, map[string]int{}
	for _, key := range s.owners() {
		if ns := c.namespaces[key.namespace]; ns == nil || ns.Labels[catalog.LabelTrust] == "" {
			owners[key.namespace] = append(owners[key.namespace], key.owner)
			pods[key.namespace] += s.refused[key].pods
		}
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		f := Finding{
			Severity: Warning, Object: "namespace/" + name,
			Message: fmt.Sprintf("%d of %d pods would be denied (%s): if it is infrastructure, label it first", pods[name], s.pods[name], few(owners[name])),
			Next:    c.helm("exemptNamespaces={" + name + "}"),
		}
		if top := c.config.Levels[0]; catalog.HostKernel.AtLeast(top.Floor) {
			f.Next = fmt.Sprintf("kubectl label namespace %s %s=%s", name, catalog.LabelTrust, top.Name)
		}
		found = append(found, f)
	}
	return found, nil
}
