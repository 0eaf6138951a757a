# METADATA
# title: Index
# description: |
#   What the catalog and the configuration say, by key. A rule that does not read the pod
#   is worked out once for all pods, so that a decision takes no longer in a cluster with
#   many classes, or with many exceptions.
# schemas:
#   - data.catalog: schema.catalog
#   - data.config: schema.config
package router.index

# METADATA
# title: The classes by name
# scope: rule
classes := {class.name: class | some class in data.catalog.runtimeClasses}

# METADATA
# title: The names of the classes that a runtime of a list means
# description: A runtime is a class's family, or the class itself as `class:NAME`.
# scope: rule
named[class.family] contains class.name if some class in data.catalog.runtimeClasses

named[$"class:{class.name}"] contains class.name if some class in data.catalog.runtimeClasses

# METADATA
# title: The classes that a list of runtimes means, in its order, and by name within a runtime
# scope: rule
of(runtimes) := [classes[name] |
	some runtime in runtimes
	some name in named[runtime]
]

# METADATA
# title: The same for each list of the configuration
# scope: rule
listed[runtimes] := of(runtimes) if {
	some level in data.config.levels
	some runtimes in level.candidates
}

# METADATA
# title: The exceptions by namespace
# scope: rule
exceptions[namespace] contains exception if {
	some exception in data.config.exceptions
	some namespace in exception.namespaces
}
