package tour;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.temporal.activity.Activity;
import io.temporal.activity.ActivityInterface;
import io.temporal.activity.ActivityOptions;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateException;
import io.temporal.common.RetryOptions;
import io.temporal.failure.ApplicationFailure;
import io.temporal.serviceclient.WorkflowServiceStubs;
import io.temporal.serviceclient.WorkflowServiceStubsOptions;
import io.temporal.worker.Worker;
import io.temporal.worker.WorkerFactory;
import io.temporal.worker.WorkerFactoryOptions;
import io.temporal.workflow.ChildWorkflowOptions;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.UpdateMethod;
import io.temporal.workflow.UpdateValidatorMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * One tour of the server, and a JSON line with what was seen: Main ADDRESS TASK_QUEUE WORKFLOW_ID
 * CACHED_WORKFLOWS
 */
public final class Main {

  /** What a run hands to the next one and, at the end of the chain, to its caller. */
  public static class State {
    public int round = 1;
    public List<String> words = new ArrayList<>();
    public int total;
    public int attempts;
    public String shout = "";
  }

  @ActivityInterface
  public interface Stumble {
    /** Fails twice; the third attempt gives its own number. */
    int stumble();
  }

  @WorkflowInterface
  public interface Shout {
    /** Gives the word in capitals. */
    @WorkflowMethod
    String shout(String word);
  }

  @WorkflowInterface
  public interface Tour {
    /** Listens until it is told to finish, then does everything else that a workflow does. */
    @WorkflowMethod
    State tour(State state);

    @SignalMethod
    void say(String word);

    @SignalMethod
    void finish();

    @QueryMethod
    List<String> words();

    @UpdateMethod
    int add(int amount);

    @UpdateValidatorMethod(updateName = "add")
    void checkAmount(int amount);
  }

  public static class StumbleActivity implements Stumble {
    @Override
    public int stumble() {
      int attempt = Activity.getExecutionContext().getInfo().getAttempt();
      if (attempt < 3) {
        throw ApplicationFailure.newFailure("stumbled " + attempt, "Stumble");
      }
      return attempt;
    }
  }

  public static class ShoutWorkflow implements Shout {
    @Override
    public String shout(String word) {
      return word.toUpperCase(Locale.ROOT);
    }
  }

  public static class TourWorkflow implements Tour {
    private final Stumble activity =
        Workflow.newActivityStub(
            Stumble.class,
            ActivityOptions.newBuilder()
                .setStartToCloseTimeout(Duration.ofSeconds(10))
                .setRetryOptions(
                    RetryOptions.newBuilder()
                        .setInitialInterval(Duration.ofMillis(50))
                        .setBackoffCoefficient(1)
                        .setMaximumAttempts(5)
                        .build())
                .build());
    // A signal or an update may be handled before the workflow's own method is entered.
    private final List<String> words = new ArrayList<>();
    private int total;
    private boolean finished;

    @Override
    public State tour(State state) {
      if (state.round > 1) {
        return state;
      }
      Workflow.await(() -> finished);
      state.words = words;
      state.total = total;

      state.attempts = activity.stumble();
      Workflow.sleep(Duration.ofMillis(50));
      ChildWorkflowOptions options =
          ChildWorkflowOptions.newBuilder()
              .setWorkflowId(Workflow.getInfo().getWorkflowId() + "-shout")
              .build();
      state.shout = Workflow.newChildWorkflowStub(Shout.class, options).shout(words.get(0));
      state.round++;
      Workflow.continueAsNew(state);
      return state;
    }

    @Override
    public void say(String word) {
      words.add(word);
    }

    @Override
    public void finish() {
      finished = true;
    }

    @Override
    public List<String> words() {
      return words;
    }

    @Override
    public int add(int amount) {
      total += amount;
      return total;
    }

    @Override
    public void checkAmount(int amount) {
      if (amount < 0) {
        throw ApplicationFailure.newFailure("negative amount", "Negative");
      }
    }
  }

  private static Map<String, Object> tour(WorkflowClient client, String taskQueue, String id) {
    WorkflowOptions options =
        WorkflowOptions.newBuilder().setTaskQueue(taskQueue).setWorkflowId(id).build();
    WorkflowStub stub = WorkflowStub.fromTyped(client.newWorkflowStub(Tour.class, options));
    String firstRunId = stub.start(new State()).getRunId();
    stub.signal("say", "hello");
    List<?> queried = stub.query("words", List.class);
    int updated = stub.update("add", Integer.class, 5);
    String rejected = "nothing";
    try {
      stub.update("add", Integer.class, -1);
    } catch (WorkflowUpdateException error) {
      rejected = ((ApplicationFailure) error.getCause()).getOriginalMessage();
    }
    stub.signal("finish");
    State result = stub.getResult(State.class);
    return Map.of(
        "first_run_id", firstRunId,
        "queried", queried,
        "updated", updated,
        "rejected", rejected,
        "result", result);
  }

  public static void main(String[] arguments) throws Exception {
    WorkflowServiceStubs service =
        WorkflowServiceStubs.newServiceStubs(
            WorkflowServiceStubsOptions.newBuilder().setTarget(arguments[0]).build());
    WorkflowClient client = WorkflowClient.newInstance(service);
    WorkerFactoryOptions cached =
        WorkerFactoryOptions.newBuilder()
            .setWorkflowCacheSize(Integer.parseInt(arguments[3]))
            .build();
    WorkerFactory factory = WorkerFactory.newInstance(client, cached);
    Worker worker = factory.newWorker(arguments[1]);
    worker.registerWorkflowImplementationTypes(TourWorkflow.class, ShoutWorkflow.class);
    worker.registerActivitiesImplementations(new StumbleActivity());
    factory.start();
    try {
      System.out.println(
          new ObjectMapper().writeValueAsString(tour(client, arguments[1], arguments[2])));
    } finally {
      factory.shutdownNow();
      factory.awaitTermination(10, TimeUnit.SECONDS);
      service.shutdownNow();
    }
  }

  private Main() {}
}
