#!/bin/sh
# containerd 2.4 writes version 1.3.0 of the OCI runtime specification, which crun 1.8.1, Debian 12's,
# refuses. Nothing that the tests use is new in it.
previous=
for argument; do
	[ "$previous" = --bundle ] && sed -i 's/"ociVersion":"1\.[1-9][^"]*"/"ociVersion":"1.0.2"/' "$argument/config.json"
	previous=$argument
done
exec crun "$@"
