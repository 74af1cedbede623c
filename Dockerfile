# The starter and the worker in one image; the embedded server is not part of it.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -o /out/starter ./starter && go build -o /out/worker ./worker

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git openssh-client && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/starter /out/worker /usr/local/bin/
RUN useradd --create-home --uid 10001 mendflow && mkdir -p /var/lib/mendflow && chown mendflow /var/lib/mendflow
USER mendflow
CMD ["worker"]
