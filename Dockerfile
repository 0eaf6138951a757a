# syntax=docker/dockerfile:1
# The builder runs on the machine's own platform and compiles for the target's: no emulation for arm64.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$VERSION" -o /out/runtimeclass-router ./cmd/runtimeclass-router

# No shell and no package manager; certificates and the user nonroot, 65532.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/runtimeclass-router /runtimeclass-router
USER 65532:65532
ENTRYPOINT ["/runtimeclass-router"]
