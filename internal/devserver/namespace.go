package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	persistenceclient "go.temporal.io/server/common/persistence/client"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/searchattribute/sadefs"
	"go.temporal.io/server/common/telemetry"
	"google.golang.org/protobuf/types/known/durationpb"
)

const systemNamespace = primitives.SystemLocalNamespace

// builtinSearchAttributes are what Mendflow's workflows upsert. A run can have several holds and use several pools at a time.
var builtinSearchAttributes = map[string]enumspb.IndexedValueType{
	"MendflowRun":        enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"MendflowStatus":     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"MendflowRepository": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"MendflowHold":       enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	"MendflowResetAt":    enumspb.INDEXED_VALUE_TYPE_DATETIME,
	"MendflowPool":       enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
	"MendflowOutcome":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
}

// seedNamespace registers the namespace, or brings an existing one up to date: retention and missing search attributes.
//
// It writes to the store before the server starts, since a change through the API of a running server is seen by each of its
// services only after their next refresh of the namespace cache.
func seedNamespace(ctx context.Context, cfg *config.Persistence, opts options, logger log.Logger) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("register namespace %s: %w", opts.namespace, err)
		}
	}()
	serializer := serialization.NewSerializer()
	factory := persistenceclient.FactoryProvider(persistenceclient.NewFactoryParams{
		DataStoreFactory: persistenceclient.DataStoreFactoryProvider(clusterName, resolver.NewNoopResolver(), cfg, nil, logger,
			metrics.NoopMetricsHandler, telemetry.NoopTracerProvider, serializer),
		Cfg:            cfg,
		ClusterName:    clusterName,
		MetricsHandler: metrics.NoopMetricsHandler,
		Logger:         logger,
		Serializer:     serializer,
	})
	defer factory.Close()
	store, err := factory.NewMetadataManager()
	if err != nil {
		return err
	}
	defer store.Close()

	ctx = headers.SetCallerInfo(ctx, headers.SystemOperatorCallerInfo)
	wanted := maps.Clone(builtinSearchAttributes)
	maps.Copy(wanted, opts.searchAttributes)

	found, err := store.GetNamespace(ctx, &persistence.GetNamespaceRequest{Name: opts.namespace})
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		return createNamespace(ctx, store, opts, wanted)
	}
	if err != nil {
		return err
	}
	return updateNamespace(ctx, store, found, opts.retention, wanted)
}

func createNamespace(ctx context.Context, store persistence.MetadataManager, opts options, wanted map[string]enumspb.IndexedValueType) error {
	aliases := map[string]string{}
	if err := addAliases(aliases, wanted); err != nil {
		return err
	}
	_, err := store.CreateNamespace(ctx, &persistence.CreateNamespaceRequest{Namespace: &persistencespb.NamespaceDetail{
		Info: &persistencespb.NamespaceInfo{
			Id:    uuid.NewString(),
			State: enumspb.NAMESPACE_STATE_REGISTERED,
			Name:  opts.namespace,
		},
		Config: &persistencespb.NamespaceConfig{
			Retention:                    durationpb.New(opts.retention),
			HistoryArchivalState:         enumspb.ARCHIVAL_STATE_DISABLED,
			VisibilityArchivalState:      enumspb.ARCHIVAL_STATE_DISABLED,
			CustomSearchAttributeAliases: aliases,
		},
		ReplicationConfig: &persistencespb.NamespaceReplicationConfig{
			ActiveClusterName: clusterName,
			Clusters:          []string{clusterName},
		},
		FailoverVersion:             common.EmptyVersion,
		FailoverNotificationVersion: -1,
	}})
	return err
}

func updateNamespace(
	ctx context.Context, store persistence.MetadataManager, found *persistence.GetNamespaceResponse,
	retention time.Duration, wanted map[string]enumspb.IndexedValueType,
) error {
	cfg := found.Namespace.GetConfig()
	aliases := maps.Clone(cfg.GetCustomSearchAttributeAliases())
	if aliases == nil {
		aliases = map[string]string{}
	}
	if err := addAliases(aliases, wanted); err != nil {
		return err
	}
	if cfg.GetRetention().AsDuration() == retention && maps.Equal(aliases, cfg.GetCustomSearchAttributeAliases()) {
		return nil
	}
	meta, err := store.GetMetadata(ctx)
	if err != nil {
		return err
	}
	cfg.Retention = durationpb.New(retention)
	cfg.CustomSearchAttributeAliases = aliases
	found.Namespace.ConfigVersion++
	return store.UpdateNamespace(ctx, &persistence.UpdateNamespaceRequest{
		Namespace:           found.Namespace,
		IsGlobalNamespace:   found.IsGlobalNamespace,
		NotificationVersion: meta.NotificationVersion,
	})
}

// addAliases gives every wanted attribute that has none yet a column of its type. On SQL stores a custom attribute is a
// pre-allocated column (Keyword01, Datetime01, …) that the namespace calls by the attribute's name.
func addAliases(aliases map[string]string, wanted map[string]enumspb.IndexedValueType) error {
	columns := sadefs.GetDBIndexSearchAttributes(nil).GetCustomSearchAttributes()
	columnOf := make(map[string]string, len(aliases))
	for column, name := range aliases {
		columnOf[name] = column
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		kind := wanted[name]
		if column, ok := columnOf[name]; ok {
			if columns[column] != kind {
				return fmt.Errorf("search attribute %s exists with the type %v, need %v", name, columns[column], kind)
			}
			continue
		}
		column := freeColumn(columns, aliases, kind)
		if column == "" {
			return fmt.Errorf("search attribute %s: no column of the type %v is left", name, kind)
		}
		aliases[column] = name
	}
	return nil
}

// freeColumn returns the first column of the kind that no attribute uses, or the empty string.
func freeColumn(columns map[string]enumspb.IndexedValueType, taken map[string]string, kind enumspb.IndexedValueType) string {
	var free []string
	for column, of := range columns {
		if _, used := taken[column]; of == kind && !used {
			free = append(free, column)
		}
	}
	if len(free) == 0 {
		return ""
	}
	return slices.Min(free)
}
