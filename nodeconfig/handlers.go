package nodeconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Handler is a handler of a catalog, and what its RuntimeClasses say of it.
type Handler struct {
	Name string
	// Family is the runtime behind it, as [catalog.Classify] knows it.
	Family    string
	Isolation catalog.Isolation
	// Classes are the names of its RuntimeClasses, sorted.
	Classes []string
	// Withheld are those of Classes that are labelled host-devices=withheld.
	Withheld []string
}

// Handlers returns the handlers of a catalog by name: all, or only the named ones.
func Handlers(c *catalog.Catalog, only []string) ([]Handler, error) {
	byName := map[string]*Handler{}
	for _, class := range c.RuntimeClasses {
		// Files hold what no API server has looked at, and both names end up in a
		// configuration file.
		if faults := slices.Concat(validation.IsDNS1123Subdomain(class.Name), validation.IsDNS1123Label(class.Handler)); len(faults) > 0 {
			return nil, fmt.Errorf("runtime class %q with handler %q: %s", class.Name, class.Handler, strings.Join(faults, "; "))
		}
		h := byName[class.Handler]
		if h == nil {
			h = &Handler{Name: class.Handler, Family: class.Family, Isolation: class.Isolation}
			byName[class.Handler] = h
		}
		h.Classes = append(h.Classes, class.Name)
		if class.HostDevicesWithheld {
			h.Withheld = append(h.Withheld, class.Name)
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	if len(names) == 0 {
		return nil, errors.New("there is no RuntimeClass, so no handler to configure")
	}
	if len(only) > 0 {
		for _, name := range only {
			if byName[name] == nil {
				return nil, fmt.Errorf("handler %q: no RuntimeClass has it; there are %s", name, strings.Join(names, ", "))
			}
		}
		names = slices.Compact(slices.Sorted(slices.Values(only)))
	}
	handlers := make([]Handler, 0, len(names))
	for _, name := range names {
		handlers = append(handlers, *byName[name])
	}
	return handlers, nil
}

// Default is the handler that a node's pods without a class should get: crun, else runc,
// and "" where there is neither, which leaves the node's as it is.
func Default(handlers []Handler) string {
	for _, family := range []string{"crun", "runc"} {
		for _, h := range handlers {
			if h.Family == family {
				return h.Name
			}
		}
	}
	return ""
}
