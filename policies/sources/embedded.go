package sources

import (
	"context"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// embedded is the policy that comes with the product.
type embedded struct{}

// NewEmbedded returns the shipped policy as a source. [Set.Policy] leaves it out where
// others replace it.
func NewEmbedded() Source { return embedded{} }

// ID implements [Source].
func (embedded) ID() ID { return ID{Kind: KindEmbedded} }

// Run implements [Source].
func (embedded) Run(ctx context.Context, deliver func(Delivery)) error {
	deliver(Delivery{Modules: policies.Shipped()})
	<-ctx.Done()
	return nil
}
