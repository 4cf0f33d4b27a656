// Made by types.mjs from docs/openapi.json; not to be edited.

export interface Agent {
  addresses: string[];
  containers: Record<string, Container>;
  draining: boolean;
  enabled: boolean;
  id: string;
  labels: Record<string, string>;
  registeredTime: string;
  resourcePools: string[];
  slotStats: Record<string, unknown>;
  slots: Record<string, Slot>;
  state: string;
  version: string;
}

export interface AgentUserGroup {
  agentGid: number;
  agentGroup: string;
  agentUid: number;
  agentUser: string;
}

export interface Allocation {
  allocationId: string;
  endTime?: string;
  exitReason?: string;
  isReady: boolean;
  slots: number;
  startTime: string;
  state: string;
  taskId: string;
}

export interface Bracket {
  maxTrials: number;
  rungs: Rung[];
}

export interface CheckpointFiles {
  /** bytes by path */
  files: Record<string, number>;
  path: string;
  totalBatches: number;
  trialId: number;
  uuid: string;
}

export interface CheckpointRow {
  allocationId: string;
  metadata: {
    steps_completed?: number;
    [further: string]: unknown;
  };
  reportTime: string;
  /** bytes by path */
  resources: Record<string, string>;
  state: string;
  taskId: string;
  training: {
    experimentConfig: Record<string, unknown>;
    experimentId: number;
    hparams: Record<string, unknown>;
    searcherMetric?: MetricValue;
    trialId: number;
    validationMetrics?: Record<string, unknown>;
  };
  trialId: number;
  uuid: string;
}

export interface CheckpointWorkload {
  endTime: string;
  metadata: Record<string, unknown>;
  /** bytes by path */
  resources: Record<string, string>;
  state: string;
  totalBatches: number;
  uuid: string;
}

export interface Container {
  devices: Device[];
  id: string;
  parent: string;
  /** true: of a run that one may not see, and `id` is not its name */
  permissionDenied?: boolean;
  state: string;
}

export interface Decision {
  at: string;
  checkpoint?: string;
  hparams?: Record<string, unknown>;
  metric?: MetricValue;
  needed?: MetricValue;
  rung?: number;
  /** among the facts of the experiment */
  sequence: number;
  /** the trial whose weights it took */
  source?: number;
  /** missing: of the experiment */
  trial?: number;
  units?: number;
  until?: MetricValue;
  what: string;
  why: string;
}

export interface DefaultConfig {
  /** complete; null where nothing is the default */
  config: Record<string, unknown>;
}

export interface Device {
  brand: string;
  id: number;
  type: string;
  uuid: string;
}

export interface Event {
  at: string;
  entity: string;
  experiment?: number;
  number: number;
  sequence: number;
  /** which says what further fields there are */
  type: string;
  [further: string]: unknown;
}

export interface Experiment {
  archived: boolean;
  bestTrialId?: number;
  bestTrialSearcherMetric?: MetricValue;
  checkpointCount: number;
  /** bytes */
  checkpointSize: string;
  /** as it was resolved */
  config: Record<string, unknown>;
  description: string;
  displayName: string;
  /** seconds */
  duration?: number;
  endTime?: string;
  externalExperimentId?: string;
  forkedFrom: number | null;
  id: number;
  jobId: string;
  labels: string[];
  name: string;
  notes: string;
  numTrials: number;
  /** as it was submitted; live rows are without */
  originalConfig?: string;
  parentArchived: boolean;
  progress: number;
  projectId: number;
  projectName: string;
  projectOwnerId: number;
  resourcePool: string;
  searcherMetric: string;
  searcherType: string;
  startTime: string;
  state: string;
  /** of one experiment; in lists absent */
  trialIds?: number[];
  unmanaged: boolean;
  userId?: number;
  username: string;
  workspaceId: number;
  workspaceName: string;
}

export interface ExperimentExplanation {
  advice: string;
  experiment: number;
  pool: string;
  reason: Reason;
  since: string;
  state: string;
  trials: {
    paused: number;
    running: number;
    waiting: number;
  };
  /** at most 20 of its trials */
  waiting: Explanation[];
  /** of the first that waits, where none runs */
  wouldFree: WouldFree[];
}

export interface Explanation {
  advice: string;
  agents: {
    agent: string;
    fits: boolean;
    free: number;
    why: string;
  }[];
  allocation: string | null;
  /** further ones */
  also: Reason[];
  /** the allocation that it waits behind, or that gets its slots */
  behind: string | null;
  estimate: {
    at: string;
    from: "history" | "progress";
    seconds: number;
  } | null;
  experiment: number | null;
  /** of such a task */
  kind?: string;
  /** of a trial that failed: the numbers of its last lines */
  log?: number[];
  pool: string;
  /** 1: next */
  position: number | null;
  priority: number;
  reason: Reason;
  reservation: {
    on: SlotsOn[];
    since: string;
  } | null;
  /** of a trial */
  runs?: RunPlace[];
  since: string;
  slots: number;
  state: "QUEUED" | "STARTING" | "RUNNING" | "STOPPING" | "PAUSED" | "BACK_OFF" | "ENDED";
  /** of a task that is not a trial: its UUID */
  task?: string;
  /** null: a task that is not a trial */
  trial: number | null;
  user: string;
  waitedSeconds: number | null;
  weight: number;
  wouldFree: WouldFree[];
}

export interface FileNode {
  contentLength: number;
  files: FileNode[];
  isDir: boolean;
  modifiedTime: string;
  name: string;
  path: string;
}

export interface GetAgentsResponse {
  agents: Agent[];
  pagination: Pagination;
}

export interface GetExperimentCheckpointsResponse {
  checkpoints: CheckpointRow[];
  pagination: Pagination;
}

export interface GetExperimentResponse {
  config: Record<string, unknown>;
  experiment: Experiment;
  jobSummary: Record<string, unknown> | null;
}

export interface GetExperimentsResponse {
  experiments: Experiment[];
  pagination: Pagination;
}

export interface GetModelDefFileResponse {
  file: string;
}

export interface GetModelDefTreeResponse {
  files: FileNode[];
}

export interface GetTaskResponse {
  task: Task;
}

export interface GetTrialCheckpointsResponse {
  checkpoints: CheckpointRow[];
  pagination: Pagination;
}

export interface GetTrialResponse {
  trial: Trial;
}

export interface GetUsersResponse {
  pagination: Pagination;
  users: User[];
}

export interface History {
  history: Moment[];
}

export interface Importance {
  hparams: {
    importance: number;
    name: string;
  }[];
  method: string;
  metric: string;
  trials: number;
}

export interface LiveCluster {
  agents: Agent[];
  status: LiveStatus;
  waiting: Waiting[];
}

export type LiveEvent = LiveHello | Experiment | LiveGone | TrialProgress | LivePoints | LogLine | LiveCluster | LiveLost;

export interface LiveGone {
  /** it was deleted, or may not be seen any more */
  experiment: number;
}

export interface LiveHello {
  masterId: string;
  sequence: number;
  /** number of the user who reads; of a task: that of its owner */
  user: number;
  version: string;
}

export interface LiveLost {
  count: number;
  topic: string;
}

export interface LivePoints {
  /** seconds since 1970 */
  at: number[];
  experiment: number;
  group: string;
  metric: string;
  row: number;
  steps: number[];
  trial: number;
  y: MetricValue[];
}

export interface LiveStatus {
  agents: number;
  experiments_active: number;
  slots: {
    total: number;
    used: number;
  };
  waiting: number;
}

export interface LogHit {
  /** the last one */
  end?: LogSearchEnd;
  result?: LogLine;
}

export interface LogLine {
  agent: string;
  at: string;
  level: string;
  line: number;
  rank: number;
  run: number;
  /** of a search: bytes of the text */
  spans?: [number, number][];
  stream: string;
  text: string;
  /** in searches and live */
  trial?: number;
}

export interface LogPage {
  first: number;
  last: number;
  lines: LogLine[];
}

export interface LogSearchEnd {
  /** from there the next search continues; null: the log was searched to its end */
  after: string | null;
  hits: number;
  scanned: number;
}

export interface MetricInfo {
  group: string;
  kind: "number" | "matrix" | "table" | "vector" | "text" | "other";
  /** of any of its trials */
  lastReport: string;
  name: string;
  reports: number;
  trials: number;
}

export interface MetricList {
  metrics: MetricInfo[];
}

export interface MetricReport {
  /** true: of a run that was given up, and trained again since */
  archived: boolean;
  endTime: string;
  group: string;
  metrics: Record<string, unknown>;
  /** `after` of the next reading */
  row: number;
  totalBatches: number;
  trialRunId: number;
}

export interface MetricSummary {
  last: MetricValue;
  /** of the finite ones */
  max: MetricValue;
  /** of the finite ones */
  min: MetricValue;
}

/** A number; JSON has no word for those that are not finite. */
export type MetricValue = number | "NaN" | "Infinity" | "-Infinity";

export interface MetricsWorkload {
  endTime: string;
  metrics: {
    avgMetrics: Record<string, unknown>;
    batchMetrics: Record<string, unknown>[];
  };
  numInputs: number;
  totalBatches: number;
}

export interface Moment {
  at: string;
  /** of `allocation_placed`; empty: the run waits again */
  on?: SlotsOn[];
  run?: number;
  /** for `at` */
  sequence: number;
  /** of `trial_ended` */
  state?: string;
  trial?: number;
  type: string;
  /** how a run ended */
  why?: string;
}

export interface Outcome {
  bestCheckpoint: CheckpointFiles | null;
  bestMetric: MetricValue | null;
  /** with `history` */
  bestSoFar?: MetricValue[];
  bestTrial: Trial | null;
  bestTrialId: number | null;
  id: number;
  metric: string;
  numTrials: number;
  progress: number;
  smallerIsBetter: boolean;
  state: string;
  why: string;
}

export interface Pagination {
  endIndex: number;
  limit: number;
  offset: number;
  startIndex: number;
  total: number;
}

export interface ParetoFront {
  front: {
    hparams: Record<string, unknown>;
    latestCheckpoint: string;
    metrics: Record<string, number>;
    totalBatches: number;
    trialId: number;
  }[];
  /** with a validation that lacks one, or has a value that is not finite */
  leftOut: number;
  metrics: {
    name: string;
    smallerIsBetter: boolean;
  }[];
  /** that have all of the metrics */
  trials: number;
}

export interface Pools {
  pools: {
    agents: number;
    default: boolean;
    experiments: number;
    name: string;
    preemption: boolean;
    provider: Record<string, unknown> | null;
    scheduler: string;
    slots: {
      reserved: number;
      total: number;
      used: number;
    };
    waiting: number;
  }[];
}

export interface Queue {
  /** with `at`: its time */
  at?: string;
  /** with `at`: that fact */
  sequence?: number;
  waiting: Waiting[];
}

export interface Reason {
  code: string;
  text: string;
}

export interface RunPlace {
  agents: string[];
  endTime: string | null;
  fromCheckpoint: string;
  fromSteps: number;
  run: number;
  startTime: string;
}

export interface Rung {
  entered: number;
  /** the bound now; NaN: none yet */
  needed: MetricValue;
  stopped: number;
  trials: RungTrial[];
  units: number;
}

export interface RungTrial {
  fate: "runs" | "waits" | "went on" | "stopped" | "finished" | "ended";
  metric: MetricValue;
  /** the bound when that was decided */
  needed?: MetricValue;
  trial: number;
}

export interface SearchStory {
  brackets: Bracket[];
  decisions: Decision[];
  metric: string;
  searcher: string;
  smallerIsBetter: boolean;
  /** empty: reports are counted */
  timeMetric: string;
}

export interface Series {
  group: string;
  metric: string;
  sequence: number;
  series: SeriesLine[];
  x: string;
}

export interface SeriesLine {
  /** of all points, of which these are some */
  count: number;
  /** of the newest report that counts */
  row: number;
  trial: number;
  x: MetricValue[];
  y: MetricValue[];
}

export interface Session {
  clusterId?: string;
  clusterName?: string;
  masterId?: string;
  /** as "kill experiment" */
  rights?: string[];
  /** of those that roles give for some workspaces alone: in which */
  rightsIn?: Record<string, number[]>;
  /** null: nobody, and nothing else is there */
  user: User | null;
  version?: string;
}

export interface ShellActorRow {
  actor: string;
  backlog: number;
  kind: string;
  messages: number;
  msg_per_s: number;
  node: string;
  restarts: number;
  run_us_p50: number | null;
  run_us_p99: number | null;
  state: string;
  uptime_s: number;
  wait_us_p50: number | null;
  wait_us_p99: number | null;
}

export interface ShellActors {
  missing: ShellMissing[];
  rows: ShellActorRow[];
}

export interface ShellEvent {
  actor: string;
  at: string;
  kind: string;
  node?: string;
  user: string;
  what: string;
}

export interface ShellEvents {
  missing: ShellMissing[];
  rows: ShellEvent[];
}

export interface ShellInfo {
  identity: Record<string, unknown>;
  links: ShellLink[];
  memory: Record<string, unknown>;
  recent: ShellNote[];
  waits_for: Record<string, unknown>[];
  work: Record<string, unknown>;
}

export interface ShellLink {
  actor: string;
  how: "owner" | "child" | "monitor";
  peer: string;
}

export interface ShellLinks {
  missing: ShellMissing[];
  rows: ShellLink[];
}

export interface ShellMissing {
  node: string;
  why: string;
}

export interface ShellNote {
  at: string;
  correlation: string;
  from: string;
  run_us: number | null;
  text: string;
  type: string;
  wait_us: number | null;
}

export interface ShellNotes {
  missing: ShellMissing[];
  rows: ShellNote[];
}

export interface ShellOrder {
  doc: string;
  fields: {
    doc: string;
    name: string;
    required: boolean;
    type: string;
  }[];
  /** of actors that take it; none: all */
  kinds: string[];
  name: string;
  permission: string;
}

export interface ShellOrders {
  missing: ShellMissing[];
  rows: ShellOrder[];
}

export interface ShellState {
  actor: string;
  /** with `diff` */
  changes?: Record<string, unknown>[];
  /** of its machine, or the part that was asked for */
  state?: unknown;
}

export interface ShellTree {
  actor: string;
  children: ShellTree[];
  restarts: number;
  state: string;
}

export interface Slot {
  container: Container | null;
  device: Device;
  draining: boolean;
  enabled: boolean;
  id: string;
  usage?: SlotUsage;
}

export interface SlotUsage {
  fault?: string;
  memory_bytes?: number;
  memory_used_bytes?: number;
  temperature_celsius?: number;
  utilization_percent?: number;
}

export interface SlotsOn {
  agent: string;
  slots: number[];
}

export interface Status {
  agents: number;
  experimentsActive: number;
  slots: {
    total: number;
    used: number;
  };
  waiting: number;
}

export interface Stop {
  metric: MetricValue;
  needed: MetricValue;
  /** -1: no rung decided */
  rung: number;
  units: number;
  why: string;
}

export interface Task {
  allocations: Allocation[];
  endTime?: string;
  logPolicyMatched?: string;
  startTime: string;
  taskId: string;
  taskType: string;
  [further: string]: unknown;
}

export interface Trial {
  bestCheckpoint: CheckpointWorkload | null;
  bestValidation: MetricsWorkload | null;
  checkpointCount: number;
  endTime?: string;
  experimentId: number;
  hparams: Record<string, unknown>;
  id: number;
  latestValidation: MetricsWorkload | null;
  logPolicyMatched?: string;
  /** -1: for ever */
  logRetentionDays?: number;
  metadata?: Record<string, unknown>;
  preemptedSlotSeconds: number;
  preemptions: number;
  restarts: number;
  runnerState: string;
  searcherMetricValue?: MetricValue;
  startTime: string;
  state: string;
  summaryMetrics: Record<string, unknown> | null;
  taskId: string;
  taskIds: string[];
  totalBatchesProcessed: number;
  totalCheckpointSize: string;
  wallClockTime: number;
  warmStartCheckpointUuid?: string;
  why: string;
}

export interface TrialProgress {
  agents: string[];
  best: Validation | null;
  endTime?: string;
  experimentId: number;
  hparams: Record<string, unknown>;
  id: number;
  latest: Validation | null;
  latestCheckpoint: string;
  /** by group.name, where `metrics` asks for some */
  metrics?: Record<string, MetricSummary>;
  restarts: number;
  runs: number;
  startTime: string;
  state: string;
  stop: Stop | null;
  totalBatches: number;
  why: string;
}

export interface TrialProgressList {
  trials: TrialProgress[];
}

export interface Usage {
  by: {
    /** null: of tasks that are not trials */
    experiment: number | null;
    slotHours: number;
    user: string;
  }[];
  slots: {
    t: string[];
    total: number[];
    used: number[];
    waiting: number[];
  };
}

export interface User {
  active: boolean;
  admin: boolean;
  agentUserGroup: AgentUserGroup | null;
  displayName: string;
  id: number;
  lastAuthAt: string | null;
  modifiedAt: string;
  remote: boolean;
  username: string;
}

export interface Validation {
  /** the searcher's; null where it names several */
  metric: MetricValue | null;
  totalBatches: number;
  /** the value of the searcher's time metric */
  units?: MetricValue;
}

export interface Waiting {
  allocation: string;
  /** null: of a task that is not a trial */
  experiment: number | null;
  /** null: of the past, where no fact says it */
  pool: string | null;
  /** in its pool, from 1; null: of the past */
  position: number | null;
  /** null: of the past, where it was its pool's */
  priority: number | null;
  /** a code of docs/scheduling.md; null: of the past */
  reason: string | null;
  since: string;
  slots: number;
  /** 0: of a task that is not a trial */
  trial: number;
  user: string;
  weight: number;
}

export interface WouldFree {
  agents: string[];
  /** null: one that the caller may not see */
  allocation: string | null;
  /** slot-seconds that would be lost; 0: it is never preempted */
  costSeconds: number;
  /** until it ends, or, where it is preempted, until it may be; null: unknown, or it may be now */
  expectedSeconds: number | null;
  /** the priority from which on it is preempted */
  fromPriority: number | null;
  how: "ends" | "preempted";
  /** the allocation that gets its slots, where it saves already */
  preemptedFor: string | null;
  slots: number;
  /** it was preempted already, and saves */
  stopping: boolean;
}
