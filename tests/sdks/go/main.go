// One tour of the server, and a JSON line with what was seen: tour ADDRESS TASK_QUEUE WORKFLOW_ID CACHED_WORKFLOWS
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"

	"go.temporal.io/sdk/client"
	tlog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

// Seen is the line of a tour.
type Seen struct {
	FirstRunID string   `json:"first_run_id"`
	Queried    []string `json:"queried"`
	Updated    int      `json:"updated"`
	Rejected   string   `json:"rejected"`
	Result     State    `json:"result"`
}

func main() {
	cached, err := strconv.Atoi(os.Args[4])
	if err == nil {
		worker.SetStickyWorkflowCacheSize(cached)
		err = run(os.Args[1], os.Args[2], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, taskQueue, workflowID string) error {
	quiet := tlog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	c, err := client.Dial(client.Options{HostPort: address, Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()

	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(Tour)
	w.RegisterWorkflow(Shout)
	w.RegisterActivity(Stumble)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()

	seen, err := tour(context.Background(), c, taskQueue, workflowID)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}

func tour(ctx context.Context, c client.Client, taskQueue, workflowID string) (seen Seen, err error) {
	options := client.StartWorkflowOptions{ID: workflowID, TaskQueue: taskQueue}
	started, err := c.ExecuteWorkflow(ctx, options, Tour, State{Round: 1})
	if err != nil {
		return seen, err
	}
	seen.FirstRunID = started.GetRunID()
	if err = c.SignalWorkflow(ctx, workflowID, "", "say", "hello"); err != nil {
		return seen, err
	}
	queried, err := c.QueryWorkflow(ctx, workflowID, "", "words")
	if err != nil {
		return seen, err
	}
	if err = queried.Get(&seen.Queried); err != nil {
		return seen, err
	}
	if seen.Updated, err = add(ctx, c, workflowID, 5); err != nil {
		return seen, err
	}
	var rejection *temporal.ApplicationError
	if _, err = add(ctx, c, workflowID, -1); !errors.As(err, &rejection) {
		return seen, fmt.Errorf("the update was not rejected by its validator: %w", err)
	}
	seen.Rejected = rejection.Message()
	if err = c.SignalWorkflow(ctx, workflowID, "", "finish", nil); err != nil {
		return seen, err
	}
	err = started.Get(ctx, &seen.Result)
	return seen, err
}

func add(ctx context.Context, c client.Client, workflowID string, amount int) (total int, err error) {
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   workflowID,
		UpdateName:   "add",
		Args:         []any{amount},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return 0, err
	}
	err = handle.Get(ctx, &total)
	return total, err
}
