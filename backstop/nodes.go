package backstop

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// nodeNames watches which nodes there are, and keeps their names only: a catalog tells
// the pools of a node that one knows, and not the nodes.
type nodeNames struct {
	factory  metadatainformer.SharedInformerFactory
	informer cache.SharedIndexInformer
	synced   cache.InformerSynced
}

func newNodeNames(config *rest.Config, changed func()) (*nodeNames, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	n := &nodeNames{factory: metadatainformer.NewSharedInformerFactoryWithOptions(client, 0, metadatainformer.WithTransform(onlyName))}
	n.informer = n.factory.ForResource(corev1.SchemeGroupVersion.WithResource("nodes")).Informer()
	registration, err := n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	n.synced = registration.HasSynced
	return n, nil
}

func (n *nodeNames) list() []string { return n.informer.GetStore().ListKeys() }

func onlyName(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}}, nil
}
