/**
 * Agents, tools and their runs. Imports no database, no model library and no optional peer.
 * @module nestjs-agent-runs
 */

// The module
export { AgentRunsModule, type AgentRunsAsyncOptions } from './module/agent-runs.module.js';
export type { AgentRunsFeatureOptions } from './module/agent-runs-feature.module.js';
export type {
  AgentRunsModuleOptions,
  AgentRunsModuleStructure,
  AgentRunsOptionsFactory,
  JobTime,
} from './module/agent-runs-module.options.js';
export type { AgentDefaults } from './discovery/registration-settings.js';

// Decorators
export { Agent } from './decorators/provider.decorators.js';
export type { AgentLimits, AgentOptions, ModelRetryOptions, ToolReference } from './decorators/agent.options.js';
export { AgentTool } from './decorators/tool.decorators.js';
export type {
  AgentToolDecorator,
  AgentToolOptions,
  ApprovalRequirement,
  ApprovalRule,
} from './decorators/agent-tool.options.js';
export type { JsonSchema, ToolInputOf, ToolSchemaSource, ToolValueOf } from './decorators/tool-value.js';
export type { StandardIssue, StandardResult, StandardSchema } from './decorators/tool-value.js';
export { RecoverTool } from './decorators/tool.decorators.js';
export { ObserveRuns } from './decorators/provider.decorators.js';
export { ResolveApprovals } from './decorators/provider.decorators.js';
export { ScreenInput } from './decorators/provider.decorators.js';
export { InjectRunStore } from './decorators/inject-run-store.decorator.js';

// Tools that are built in
export { ASK_USER } from './engine/ask-user-tool.js';

// What tools get and give
export { didNotHappen, happened, outcomeUnknown } from './tools/nest-tool-caller.js';
export type {
  ApprovalGiven,
  ApprovalRequest,
  InterruptedToolCall,
  ProbeResult,
  StepRecovery,
  ToolContext,
} from './contracts/ports/tool-caller.port.js';

// Injectables
export { RunService, RunMetrics } from './engine/run-service.js';
export { RunWorker } from './engine/run-worker.js';
export { RunRecovery } from './engine/run-recovery.js';

// Runs as callers see them
export {
  CONTRACT_VERSION,
  type Actor,
  type ClaimCause,
  type FrozenOptions,
  type InterruptRequest,
  type RunChange,
  type RunError,
  type RunMetadata,
  type RunRecord,
  type RunSummary,
  type RunTotals,
  type SessionChange,
  type SessionMode,
  type SessionRecord,
  type WakeNote,
} from './contracts/run.js';
export type { Duration, DurationUnit } from './contracts/duration.js';
export type { JsonObject, JsonValue, JsonOf } from './contracts/json.js';
export type {
  BudgetDecision,
  CallerNote,
  EventOptions,
  InteractionResponse,
  ListOptions,
  PendingInteractionsOptions,
  PromptMessage,
  PromptPart,
  RestartOptions,
  RetryOptions,
  ResumeOptions,
  SessionMessagesOptions,
  StartContext,
  StartOptions,
  SteerOptions,
  SteerReceipt,
  StreamOptions,
  ToolResolution,
  WaitOptions,
} from './contracts/run-requests.js';
export type {
  AgentDescription,
  BudgetStatus,
  EventPage,
  InteractionView,
  LifecycleRunEvent,
  OperationView,
  PreviousGeneration,
  Run,
  RunEvent,
  RunLeaseView,
  RunSnapshot,
  RunSummaryView,
  StreamedEvent,
  WorkerStatus,
} from './contracts/run-view.js';
export {
  isSettled,
  phaseOf,
  RUN_PHASES,
  RUN_STATUSES,
  type Attention,
  type AttentionReason,
  type RunPhase,
  type RunStatus,
  type WaitReason,
} from './contracts/run-status.js';
export {
  interactionPlace,
  type InboxMessage,
  type Interaction,
  type InteractionDecision,
  type InteractionKind,
  type InteractionStatus,
  type Question,
} from './contracts/interaction.js';
export type {
  Operation,
  OperationInterruption,
  OperationKind,
  OperationStatus,
  Usage,
  UsageTotals,
} from './contracts/operation.js';
export type {
  ApprovalEdit,
  AssistantMessage,
  AssistantPart,
  FilePart,
  Message,
  OpaquePart,
  ReasoningPart,
  SystemMessage,
  TextPart,
  ToolCallPart,
  ToolMessage,
  ToolOutcome,
  ToolResultPart,
  UserMessage,
  UserPart,
} from './contracts/message.js';
export { RECOVERY_POLICIES, type RecoveryPolicy, type RetryPolicy } from './contracts/policies.js';
export type {
  ApprovalVerdict,
  FinishReason,
  JournalEntry,
  JournalEntryType,
  RecordedError,
  SequencedEntry,
} from './contracts/journal-entry.js';
export type { RecordedText } from './contracts/text.js';
export type { Instructions, InstructionsContext, Offer, AgentReference } from './contracts/agent-definition.js';

// Ports that a host may implement
export type {
  ApprovalResolution,
  ApprovalResolver,
  ApprovalToResolve,
  InputGuardrail,
  InputVerdict,
  ScreenedInput,
  LifecycleEvent,
  RunObserver,
} from './contracts/ports/host.port.js';
export type {
  ModelClient,
  ModelReply,
  ModelReplyCall,
  ModelReplyPart,
  ModelRequest,
  ModelSettings,
  ModelToolSpec,
  ToolChoice,
} from './contracts/ports/model-client.port.js';
export {
  RunStore,
  type AppendRequest,
  type CreateDecision,
  type CreateRequest,
  type CreateResult,
  type RunAtOneMoment,
  type CreateSituation,
  type DueAnswer,
  type DueQuery,
  type HeldRunState,
  type InteractionQuery,
  type JournalNews,
  type JournalPosition,
  type LeaseView,
  type ListQuery,
  type LockedRun,
  type OverdueAnswer,
  type OverdueQuery,
  type Page,
  type RunWrite,
  type StoreMetrics,
  type StoreTraits,
  type ToolTransaction,
  type TransitionDecision,
  type TransitionRequest,
  type TransitionResult,
  type WorkerBeat,
  type WorkerRecord,
} from './contracts/ports/run-store.port.js';

// Errors
export { AgentRunsError } from './errors/agent-runs.error.js';
export type { AgentRunsErrorOptions, ErrorFamily } from './errors/agent-runs.error.js';
export { ERROR_CODES } from './errors/agent-runs.error.js';
export type { ErrorCode } from './errors/agent-runs.error.js';
export { InvalidConfigurationError } from './errors/configuration.errors.js';
export {
  AgentNotFoundError,
  AlreadyDecidedError,
  ForbiddenError,
  IllegalTransitionError,
  InputRefusedError,
  InteractionExpiredError,
  InteractionNotFoundError,
  InvalidAnswerError,
  InvalidArgumentsError,
  InvalidCursorError,
  InvalidRequestError,
  OpenInteractionsError,
  OperationConflictError,
  PayloadTooLargeError,
  RequestConflictError,
  RunExistsError,
  RunLeasedError,
  RunNotFoundError,
  SessionBusyError,
  TooManyPendingError,
  VersionUnavailableError,
} from './errors/request.errors.js';
export {
  ApprovalDeniedError,
  InvalidToolArgumentsError,
  ModelCallError,
  QuestionNotAnsweredError,
  ToolDeniedError,
} from './errors/run.errors.js';
export type { ModelCallFacts } from './errors/run.errors.js';
export {
  BrokenStoreError,
  FencedError,
  JournalCorruptError,
  NewerSchemaError,
  SequenceConflictError,
  StoreConflictError,
  StoreLockedError,
  StoreUnavailableError,
  StreamInterruptedError,
} from './errors/store.errors.js';
