package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/shadow"
)

// statuszPath is served beside the metrics.
const statuszPath = "/statusz"

// statusReport is what /statusz answers.
type statusReport struct {
	Policy  policyStatus     `json:"policy"`
	Sources []sources.Status `json:"sources"`
	Catalog catalogStatus    `json:"catalog"`
	// Shadow is the second policy, where one is configured.
	Shadow *shadow.Status `json:"shadow,omitempty"`
}

// policyStatus tells of the policy in force, and of what is not.
type policyStatus struct {
	// Revision is empty until a policy is in force, as are the three after it.
	Revision string     `json:"revision"`
	LoadedAt *time.Time `json:"loadedAt"`
	Mode     string     `json:"mode"`
	Files    int        `json:"files"`
	// Errors keep what the sources hold from being in force.
	Errors []string `json:"errors,omitempty"`
	// ConfigurationErrors keep the configuration file from being so.
	ConfigurationErrors []string `json:"configurationErrors,omitempty"`

	bySource map[sources.ID][]string
}

// catalogStatus tells of the cluster as it is known.
type catalogStatus struct {
	Revision       string `json:"revision"`
	RuntimeClasses int    `json:"runtimeClasses"`
}

// setErrors records what is wrong with the joined policy: as a whole, and with the
// source whose file it is.
func (l *loader) setErrors(policy *sources.Policy, err error) {
	bySource := map[sources.ID][]string{}
	for _, problem := range policies.Problems(err) {
		if policy == nil {
			break
		}
		if id, ok := policy.Owner(problem.File); ok && id.Kind != sources.KindEmbedded {
			bySource[id] = append(bySource[id], problem.String())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Errors, l.status.bySource = sources.Lines(err), bySource
}

// report is what /statusz answers now.
func (l *loader) report() statusReport {
	l.mu.Lock()
	s := statusReport{Policy: l.status, Sources: []sources.Status{}}
	replace := l.status.Mode == "replace"
	l.mu.Unlock()
	for _, source := range l.set.Status() {
		if replace && source.Kind == sources.KindEmbedded {
			continue
		}
		source.Errors = append(source.Errors, s.Policy.bySource[source.ID()]...)
		s.Sources = append(s.Sources, source)
	}
	c := l.catalog()
	if l.shadow != nil {
		s.Shadow = new(l.shadow.Status())
	}
	s.Catalog = catalogStatus{Revision: c.Revision(), RuntimeClasses: len(c.RuntimeClasses)}
	return s
}

// faults counts what is wrong now, by what it is of. A source that an earlier process
// kept counts as one, because what it holds may be old.
func (l *loader) faults() map[string]int {
	l.mu.Lock()
	count := map[string]int{"policy": len(l.status.Errors), "configuration": len(l.status.ConfigurationErrors), "source": 0}
	l.mu.Unlock()
	for _, source := range l.set.Status() {
		if source.Err() != nil || source.State == "persisted" {
			count["source"]++
		}
	}
	return count
}

// ServeHTTP answers /statusz.
func (l *loader) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(l.report()); err != nil {
		l.log.V(1).Info("answer /statusz", "error", err.Error())
	}
}
