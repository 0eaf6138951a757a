package shadow

import (
	"cmp"
	"context"

	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// look holds decisions against the second policy until ctx ends.
func (s *Shadow) look(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-s.waiting:
			if s.limit.Wait(ctx) != nil {
				return nil //nolint:nilerr // ctx has ended
			}
			if now := s.current.Load(); now != nil {
				s.compare(ctx, now, d)
			}
		}
	}
}

func (s *Shadow) compare(ctx context.Context, now *loaded, d *webhook.Decision) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	was, err := survey.VerdictOf(d.Route, d.Err)
	if err != nil {
		s.failed.Inc() // the pod cannot be read, or the namespace is not known: no policy was asked
		return
	}
	in := d.Input
	is, err := now.side.Verdict(ctx, &in)
	if err != nil {
		s.failed.Inc()
		return
	}
	// A decision is compared with one over the same cluster and configuration, or not at all:
	// while one of the two has gone on, they differ for no fault of a policy.
	s.mu.Lock()
	paired := s.pairing
	s.mu.Unlock()
	if d.Route.CatalogRevision != is.Route.CatalogRevision || d.Route.PolicyRevision != paired.revision || now.digest != paired.digest {
		s.outdated.Inc()
		return
	}
	position := int(now.compared.Add(1))
	owner := d.Request.Name
	controller, err := in.Pod.Controller()
	if err == nil {
		owner = cmp.Or(survey.OwnerOf(controller, in.Pod.Labels), "Pod/"+cmp.Or(d.Request.Name, "(generated)"))
	}
	change, differs := now.changes.Add(position, d.Request.Namespace, owner, was, is)
	if !differs {
		s.same.Inc()
		return
	}
	s.differ(change).Inc()
	if d.Sampled(s.options.Sample) {
		s.log.Info("the second policy decides otherwise", "requestID", d.Request.UID, "namespace", change.Namespace, "owner", change.Owner,
			"from", change.From, "to", change.To, "newlyDenied", change.NewlyDenied, "reason", is.News(was))
	}
}
