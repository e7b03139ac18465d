/* The ends of logs, as they stand in public issues of PyTorch, NCCL, DeepSpeed, JAX, ROCm, Gaudi and Ascend
 * and in the sources of launchers and kernels. Each row was read wrongly once. */
#include "signature_rows.h"

#define HEAD "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x\n"

/* Losses, gradients and logits that are not finite, in the words of trainers and libraries. */
static const struct row numbers_rows[] = {
    {"[2026-11-28 10:00:00] step=300 loss=tensor(nan, device='cuda:0')\n", SIGNATURE_NUMERIC},
    {HEAD "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it "
          "cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, "
          "set `error_if_nonfinite=False`\n",
     SIGNATURE_NUMERIC},
    {HEAD "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n",
     SIGNATURE_NUMERIC},
    {HEAD "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try "
          "lowering the learning rate, using gradient clipping or increasing the batch size.\n",
     SIGNATURE_NUMERIC},
    {HEAD "FloatingPointError: gradients are Nan/Inf\n", SIGNATURE_NUMERIC},
    {HEAD "lightning.pytorch.utilities.exceptions.MisconfigurationException: The loss returned in "
          "`training_step` is tensor(nan, device='cuda:0').\n",
     SIGNATURE_NUMERIC},
    {HEAD "ValueError: The loss returned in `training_step` is nan.\n", SIGNATURE_NUMERIC},
    {HEAD "ValueError: Expected parameter logits (Tensor of shape (1, 4)) of distribution "
          "Categorical(logits: torch.Size([1, 4])) to satisfy the constraint IndependentConstraint(Real(), "
          "1), but found invalid values:\ntensor([[nan, nan, nan, nan]])\n",
     SIGNATURE_NUMERIC},
    {"tensorflow.python.framework.errors_impl.InvalidArgumentError: Tensor had NaN values "
     "[Op:CheckNumerics]\n",
     SIGNATURE_NUMERIC},
    {"tensorflow/core/kernels/check_numerics_op.cc:185: InvalidArgumentError:  Gradients : Tensor had Inf "
     "and NaN values\n",
     SIGNATURE_NUMERIC},
    {"Batch 12: Invalid loss, terminating training\n", SIGNATURE_NUMERIC},
    {HEAD "FloatingPointError: Loss became infinite or NaN at iteration=57!\n", SIGNATURE_NUMERIC},
    {"ValueError: NaN loss encountered. Epoch: 3 batch_idx: 4\n", SIGNATURE_NUMERIC},
    {HEAD "RuntimeError: Detected nan/inf grad_norm in global_step=120\n", SIGNATURE_NUMERIC},
    {"step 8 loss 1.#QNAN\n", SIGNATURE_NUMERIC},
    {"loss is not finite: nan, stop\n", SIGNATURE_NUMERIC},
    {"WARNING: non-finite loss, ending training  tensor([nan, nan], device='cuda:0')\n", SIGNATURE_NUMERIC},
};

/* Out-of-memory kills, exceptions and aborts of many run-times. */
static const struct row programs_rows[] = {
    {"Task in /kubepods/burstable/pod1 killed as a result of limit of /kubepods/burstable/pod1\n",
     SIGNATURE_OOM},
    {"kernel: [1.2] oom_kill_process+0x254/0x3d0\n", SIGNATURE_OOM},
    {"[1.2] Tasks in /docker/abc are going to be killed due to memory.oom.group set\n", SIGNATURE_OOM},
    {"=>> PBS: job killed: mem 67108864kb exceeded limit 33554432kb\n", SIGNATURE_OOM},
    {"TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n", SIGNATURE_OOM},
    {"Container killed on request. Exit code is 137... Container [pid=1] is running beyond virtual memory "
     "limits.\n",
     SIGNATURE_OOM},
    {"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container main was "
     "using 1Gi, request is 0, has larger consumption of memory.\n",
     SIGNATURE_OOM},
    {"systemd[1]: train.service: Failed with result 'oom-kill'.\n", SIGNATURE_OOM},
    {"A worker died or was killed while executing a task by an unexpected system error. ray::f Workers "
     "(tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons\n",
     SIGNATURE_OOM},
    {"[raylet] 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to "
     "other reasons at node\n",
     SIGNATURE_OOM},
    {"OOM killer killed process 12 (python)\n", SIGNATURE_OOM},
    {"RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: not enough memory: "
     "you tried to allocate 1099511627776 bytes.\n",
     SIGNATURE_MEMORY},
    {"There is insufficient memory for the Java Runtime Environment to continue.\n", SIGNATURE_MEMORY},
    {"fatal: Out of memory, malloc failed (tried to allocate 12 bytes)\n", SIGNATURE_MEMORY},
    {"python: malloc.c:2617: sysmalloc: Assertion failed. \nAllocation failed: out of host memory\n",
     SIGNATURE_MEMORY},
    {"Error executing job with overrides: []\nError in call to target "
     "'train.Model':\nTypeError(\"Model.__init__() got an unexpected keyword argument 'x'\")\nfull_key: "
     "model\n",
     SIGNATURE_TRACEBACK},
    {"libc++abi: terminating due to uncaught exception of type std::runtime_error: bad\n", SIGNATURE_ABORT},
    {"libc++abi.dylib: terminating with uncaught exception of type std::runtime_error: bad\n",
     SIGNATURE_ABORT},
    {"forrtl: severe (174): SIGSEGV, segmentation fault occurred\n", SIGNATURE_ABORT},
    {"Fortran runtime error: Index '7' of dimension 1 of array 'a' above upper bound of 5\n",
     SIGNATURE_ABORT},
    {"*** SIGSEGV (@0x0) received by PID 77 (TID 0x7f) from PID 0; stack trace: ***\n", SIGNATURE_ABORT},
    {"==1==ERROR: ThreadSanitizer: SEGV on unknown address\n", SIGNATURE_ABORT},
    {"WARNING: ThreadSanitizer: data race (pid=77)\na.c:3: runtime error: signed integer overflow\nSUMMARY: "
     "UndefinedBehaviorSanitizer: undefined-behavior a.c:3:5 in\n",
     SIGNATURE_ABORT},
    {"The futex facility returned an unexpected error code.\n", SIGNATURE_ABORT},
    {"tcache_thread_shutdown(): unaligned tcache chunk detected\n", SIGNATURE_ABORT},
    {"unlink_chunk(): corrupted\n", SIGNATURE_ABORT},
    {"tcmalloc: Attempt to free invalid pointer 0x55\n", SIGNATURE_ABORT},
    {"src/tcmalloc.cc:332] Attempt to free invalid pointer 0x7f\n", SIGNATURE_ABORT},
    {"<jemalloc>: Error in munmap(): Invalid argument\n", SIGNATURE_ABORT},
    {"Fatal error: glibc detected an invalid stdio handle\n", SIGNATURE_ABORT},
    {"Unrecognized GLIBC abort: *** %n in writable segment detected ***\n", SIGNATURE_ABORT},
    {"thread caused non-unwinding panic. aborting.\n", SIGNATURE_ABORT},
    {"[libprotobuf FATAL google/protobuf/message.cc:3] CHECK failed: x\n", SIGNATURE_ABORT},
    {"E1128 10:00:00.1 77 x.cc:3] CHECK failed\n", SIGNATURE_ABORT},
    {"CHECK failed: t->ok\n", SIGNATURE_ABORT},
    {"Assertion failure in x.cpp line 3\n", SIGNATURE_ABORT},
};

/* Victims of a peer, and launchers that sum up. */
static const struct row peers_rows[] = {
    {"[rank0]:[E1128 10:00:00 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 0] Observed "
     "flight recorder dump signal from another rank via TCPStore.\n",
     SIGNATURE_WATCHDOG},
    {"RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no "
     "error\n",
     SIGNATURE_PEER},
    {"n1:77:99 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.7<41213> failed : "
     "Software caused connection abort\n",
     SIGNATURE_PEER},
    {"n1:77:99 [0] NCCL WARN [Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 3\n",
     SIGNATURE_PEER},
    {"n1:77:99 [0] proxy.cc:1521 NCCL WARN [Service thread] Could not receive type from localRank 3, res=3, "
     "closed=0\n",
     SIGNATURE_PEER},
    {"n1:77:99 [0] transport/net_ib.cc:96 NCCL WARN NET/IB : mlx5_0:1 Got async event : port error\n",
     SIGNATURE_NETWORK},
    {"torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error\nncclSystemError: "
     "System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nCall "
     "to ibv_reg_mr failed with error Cannot allocate memory\n",
     SIGNATURE_MEMORY},
    {"torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error\nncclSystemError: "
     "System call\nLast error:\nError: failed to extend /dev/shm/nccl-7Y0Yyd to 33030532 bytes\n",
     SIGNATURE_SHARED_MEMORY},
    {"torch.distributed.elastic.rendezvous.api.RendezvousGracefulExitError\n", SIGNATURE_PEER},
    {"MPI_ERR_PROC_FAILED: Process Failure\n", SIGNATURE_PEER},
    {"[n1:00077] *** An error occurred in MPI_Allreduce\n[n1:00077] *** reported by process "
     "[123,0]\n[n1:00077] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n",
     SIGNATURE_PEER},
    {"prterun noticed that process rank 3 with PID 77 on node n1 exited on signal 9 (Killed).\n",
     SIGNATURE_KILLED},
    {"mpiexec noticed that process rank 0 with PID 0 on node n1 exited on signal 9 (Killed).\n",
     SIGNATURE_KILLED},
    {"===================================================================================\n=   BAD "
     "TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 77 RUNNING AT n1\n=   EXIT CODE: 9\n=   "
     "CLEANING UP REMAINING PROCESSES\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
     SIGNATURE_KILLED},
    {"joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor "
     "was unexpectedly terminated. This could be caused by a segmentation fault while calling the function "
     "or by an excessive memory usage causing the Operating System to kill the worker. The exit codes of the "
     "workers are {SIGKILL(-9)}\n",
     SIGNATURE_KILLED},
    {"RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, "
     "disable multiprocessing.\nKilled\n",
     SIGNATURE_KILLED},
};

/* Services, names, storage and limits. */
static const struct row surroundings_rows[] = {
    {"huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on "
     "the Hub and we cannot find the requested files in the local cache. Please check your connection and "
     "try again or make sure your Internet connection is on.\n",
     SIGNATURE_SERVICE},
    {"requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(1 bytes read, 2 more "
     "expected)', IncompleteRead(1 bytes read, 2 more expected))\n",
     SIGNATURE_SERVICE},
    {"urllib3.exceptions.ProtocolError: ('Connection broken: IncompleteRead(1 bytes read)', "
     "IncompleteRead(1))\n",
     SIGNATURE_SERVICE},
    {"aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host storage.googleapis.com:443 "
     "ssl:default [Connect call failed ('1.2.3.4', 443)]\n",
     SIGNATURE_SERVICE},
    {"aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected\n", SIGNATURE_SERVICE},
    {"gcsfs.retry.HttpError: Backend Error, 503\n", SIGNATURE_SERVICE},
    {"google.auth.exceptions.TransportError: HTTPConnectionPool(host='metadata.google.internal', port=80)\n",
     SIGNATURE_SERVICE},
    {"botocore.exceptions.ConnectionClosedError: Connection was closed before we received a valid response "
     "from endpoint URL: \"https://s3/x\".\n",
     SIGNATURE_SERVICE},
    {"OSError: When reading information for key 'x' in bucket 'b': AWS Error NETWORK_CONNECTION during "
     "HeadObject operation: curlCode: 28, Timeout was reached\n",
     SIGNATURE_SERVICE},
    {"google.api_core.exceptions.GatewayTimeout: 504 GET https://storage.googleapis.com/x\n",
     SIGNATURE_SERVICE},
    {"google.api_core.exceptions.TooManyRequests: 429 GET https://storage\n", SIGNATURE_SERVICE},
    {"azure.core.exceptions.HttpResponseError: Server failed to authenticate. ErrorCode:ServerBusy\n",
     SIGNATURE_SERVICE},
    {"httpx.ConnectError: All connection attempts failed\n", SIGNATURE_SERVICE},
    {"httpx.ReadTimeout: The read operation timed out\n", SIGNATURE_SERVICE},
    {"wandb.errors.CommError: Network error (ConnectionError), entering retry loop.\n" HEAD
     "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.\n",
     SIGNATURE_SERVICE},
    {"wget: unable to resolve host address 'x.y'\n", SIGNATURE_NAME},
    {"[W1128 10:00:00 socket.cpp:697] [c10d] The IPv6 network addresses of (job-w-0-0.job, 29500) cannot be "
     "retrieved (gai error: -2 - Name or service not known).\ntorch.distributed.DistNetworkError: The client "
     "socket has failed to connect to any network address of (job-w-0-0.job, 29500). The client socket has "
     "failed to resolve (job-w-0-0.job, 29500)\n",
     SIGNATURE_NAME},
    {"dial tcp: lookup x on 10.0.0.10:53: server misbehaving\n", SIGNATURE_NAME},
    {"OSError: [Errno 112] Host is down\n", SIGNATURE_STORAGE},
    {"OSError: [Errno 512] Unknown error 512: '/lustre/x'\n", SIGNATURE_STORAGE},
    {"OSError: [Errno 11] Resource temporarily unavailable: '/lustre/x/lock'\n", SIGNATURE_STORAGE},
    {"BlockingIOError: [Errno 11] Unable to create file (unable to lock file, errno = 11, error message = "
     "'Resource temporarily unavailable')\n",
     SIGNATURE_STORAGE},
    {"OSError: [Errno 61] No data available: '/x'\n", SIGNATURE_STORAGE},
    {"OSError: [Errno 74] Bad message: '/x'\n", SIGNATURE_STORAGE},
    {"RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 64 vs 0\n", SIGNATURE_STORAGE},
    {"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n",
     SIGNATURE_STORAGE},
    {"safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer\n",
     SIGNATURE_STORAGE},
    {"OSError: [Errno 14] Bad address: '/gpfs/x'\n", SIGNATURE_STORAGE},
    {"sqlite3.OperationalError: database or disk is full\n", SIGNATURE_DISK_FULL},
    {"EDQUOT: disk quota exceeded, write\n", SIGNATURE_DISK_FULL},
    {"ENOSPC: no space left on device, write\n", SIGNATURE_DISK_FULL},
    {"The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi\n", SIGNATURE_DISK_FULL},
    {"ValueError: The configured object store size exceeds /dev/shm size\n", SIGNATURE_SHARED_MEMORY},
    {"ERROR: received 0 items of ancdata\n" HEAD "RuntimeError: received 0 items of ancdata\n",
     SIGNATURE_DESCRIPTORS},
    {"OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 4096 max\n", SIGNATURE_DESCRIPTORS},
    {"OSError: [Errno 28] inotify watch limit reached\n", SIGNATURE_DESCRIPTORS},
    {"google.api_core.exceptions.Forbidden: 403 GET https://storage.googleapis.com/x\n", SIGNATURE_TRACEBACK},
};

/* Chips that are broken, missing, busy or without a driver; programs that misuse them. */
static const struct row chips_rows[] = {
    {"RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing "
     "env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.\n",
     SIGNATURE_CHIP_MISSING},
    {HEAD "AssertionError: No GPUs found\n", SIGNATURE_CHIP_MISSING},
    {"ValueError: Attempting to run on cuda, but no GPUs are available\n", SIGNATURE_CHIP_MISSING},
    {"RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
     "False.\n",
     SIGNATURE_CHIP_MISSING},
    {"lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!\n",
     SIGNATURE_CHIP_MISSING},
    {"lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1, 2, 3]\n But "
     "your machine only has: [0, 1, 2]\n",
     SIGNATURE_CHIP_MISSING},
    {"failed call to cuInit: UNKNOWN ERROR (303)\n", SIGNATURE_DRIVER},
    {"pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found\n", SIGNATURE_DRIVER},
    {"pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded\n", SIGNATURE_DRIVER},
    {"pynvml.nvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.\n",
     SIGNATURE_DRIVER},
    {"pynvml.NVMLError_NotFound: Not Found\n", SIGNATURE_CHIP_MISSING},
    {"nvidia-container-cli: detection error: nvml error: unknown error\n", SIGNATURE_DRIVER},
    {"nvidia-container-cli: detection error: nvml error: gpu is lost\n", SIGNATURE_CHIP_BROKEN},
    {"nvidia-container-cli: device error: 3: unknown device: unknown\n", SIGNATURE_CHIP_MISSING},
    {"GPU Fabric Manager state: Not Started\n", SIGNATURE_DRIVER},
    {"Fabric\n    State                             : In Progress\n    Status                            : "
     "N/A\n",
     SIGNATURE_DRIVER},
    {"Failed to start NVIDIA fabric manager service.\n", SIGNATURE_DRIVER},
    {"fabric state: CompletedWithError\n", SIGNATURE_DRIVER},
    {"GPU 3 fabric registration failed: state=completed status=NVML_ERROR_UNKNOWN\n", SIGNATURE_DRIVER},
    {"CUDA error: contained / uncontained: an uncontained error was encountered: cudaErrorContained\n",
     SIGNATURE_CHIP_BROKEN},
    {"Triton Error [CUDA]: an illegal memory access was encountered\n", SIGNATURE_CHIP},
    {"triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 1, Hardware limit: 1. "
     "Reducing block sizes or `num_stages` may help.\n",
     SIGNATURE_CHIP_MEMORY},
    {"Triton Error [CUDA]: out of memory\n", SIGNATURE_CHIP_MEMORY},
    {"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1 bytes\n", SIGNATURE_CHIP_MEMORY},
    {"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
     "shape[1,2] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n",
     SIGNATURE_CHIP_MEMORY},
    {"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
     "initializing the engine.\n",
     SIGNATURE_CHIP_MEMORY},
    {"HW Exception by GPU node-4 (Agent handle: 0x55) reason :GPU Hang\n", SIGNATURE_CHIP},
    {":0:rocdevice.cpp:2984: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: "
     "The runtime failed to allocate the necessary resources. Available Free mem : 0 MB\n",
     SIGNATURE_CHIP_MEMORY},
    {"rocm-smi: ERROR: No AMD GPUs specified / No GPU detected\n", SIGNATURE_CHIP_MISSING},
    {"HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. uncorrectable ECC\n",
     SIGNATURE_CHIP_BROKEN},
    {"RuntimeError: The Inner error is reported as above. The process exits for this inner error, and the "
     "current working operator name is X.\n[ERROR] 2026-11-28-10:00:00 (PID:77, Device:0, RankID:-1) "
     "ERR00100 PTA call acl api failed\n",
     SIGNATURE_CHIP},
    {"RuntimeError: ACL stream synchronize failed, error code:507011\n", SIGNATURE_CHIP},
    {"RuntimeError: NPU function error: aclrtMalloc, error code is 207001\n[Error]: Memory allocation "
     "failed. EL0004: Failed to allocate memory.\n",
     SIGNATURE_CHIP_MEMORY},
    {"dcmi model initialized failed, because the device is used. ret is -8020\n", SIGNATURE_DRIVER},
    {"drvErr=87 : open device 0 failed, runtime result = 507033\n", SIGNATURE_DRIVER},
    {"jax.errors.JaxRuntimeError: FAILED_PRECONDITION: The program continuator has halted unexpectedly.\n",
     SIGNATURE_CHIP},
    {"TPU worker process crashed: Check failed: core_dumped\n", SIGNATURE_CHIP},
    {"F1128 10:00:00.000000 77 tpu_program.cc:3] TPU core halt detected, hlo: all-reduce.3\n",
     SIGNATURE_CHIP},
    {"jax.errors.JaxRuntimeError: UNKNOWN: TPU driver: TensorNode is in bad state\n", SIGNATURE_CHIP},
    {"RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.\n",
     SIGNATURE_CHIP_MISSING},
    {"megascale: E0000 MXLA: Detected hang: timed out waiting for\n", SIGNATURE_WATCHDOG},
    {"RuntimeError: Bad StatusOr access: INTERNAL: x\n", SIGNATURE_CHIP},
    {"torch_xla: RuntimeError: Bad StatusOr access: UNAVAILABLE: Socket closed\n", SIGNATURE_PEER},
};

/* Lines after which the program went on. */
static const struct row survived_rows[] = {
    {"Attempt 1/5 failed: [Errno 5] Input/output error\nstep 1 loss 2\n", SIGNATURE_NONE},
    {"[W] disk: No space left on device, using /tmp\nstep 1 loss 2\n", SIGNATURE_NONE},
    {"{\"level\": \"warning\", \"message\": \"CUDA out of memory\"}\nstep 3 loss 2\n", SIGNATURE_NONE},
    {"level=warning msg=\"No space left on device\"\nstep 3 loss 2\n", SIGNATURE_NONE},
    {"time=\"2026-11-28\" level=info msg=\"retry: Input/output error\"\nstep 3 loss 2\n", SIGNATURE_NONE},
    {"OOM handled: CUDA out of memory; reduced batch size to 8\nstep 3 loss 2\n", SIGNATURE_NONE},
    {"CUDA out of memory (handled)\nstep 3 loss 2\n", SIGNATURE_NONE},
    {"ran out of memory (CUDA out of memory), using gradient checkpointing instead\nstep 3 loss 2\n",
     SIGNATURE_NONE},
    {"2026-11-28 10:00:00.000000: W tensorflow/core/x.cc:3] CUDA_ERROR_OUT_OF_MEMORY: out of memory\nstep 3 "
     "loss 2\n",
     SIGNATURE_NONE},
    {"Exception ignored in: <_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>\nBrokenPipeError: "
     "[Errno 32] Broken pipe\n",
     SIGNATURE_NONE},
    {"downloading vocab: 503 Server Error: Service Unavailable for url: https://x (will be retried)\nstep 3 "
     "loss 2\n",
     SIGNATURE_NONE},
};

/* Progress bars, prefixes and forms of older releases. */
static const struct row real_rows[] = {
    {"Training ━━━━━━━╸━━━━━━━  19% step: 5700 loss: 0.028 :: Elapsed: 0:21:08terminate called after "
     "throwing an instance of 'c10::Error'\n  what():  CUDA error: unknown error\nCUDA kernel errors might "
     "be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n",
     SIGNATURE_CHIP},
    {"luajit: cuda runtime error (30) : unknown error at /tmp/THCStorage.c:113\n", SIGNATURE_CHIP},
    {"RuntimeError: cuda runtime error (77) : an illegal memory access was encountered at "
     "/pytorch/THC.cu:1\n",
     SIGNATURE_CHIP},
    {"RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/THCGeneral.cpp:50\n",
     SIGNATURE_CHIP_MEMORY},
    {"[2026-11-28 10:00:00,000] [ERROR] [launch.py:324:sigkill_handler] ['/bin/python', '-u', 'a.py'] exits "
     "with return code = -11\n",
     SIGNATURE_ABORT},
    {"[2026-11-28 10:00:00,000] [ERROR] [launch.py:324:sigkill_handler] ['/bin/python', '-u', 'a.py'] exits "
     "with return code = -6\n",
     SIGNATURE_ABORT},
    {"An MPI communication peer process has unexpectedly disconnected.  This\nusually indicates a failure in "
     "the peer process (e.g., a crash or\notherwise exiting without calling MPI_FINALIZE first).\n",
     SIGNATURE_PEER},
    {"2019-06-02T16:13:44.884Z: [1,12]<stdout>:c:815:864 [0] transport/net_ib.cu:80 NCCL WARN NET/IB : Got "
     "async event : local catastrophic error\n",
     SIGNATURE_NETWORK},
    {"worker-1: EH9999: Inner Error!\nworker-1:         rtDeviceSynchronize execute failed, reason=[task "
     "timeout][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]\nworker-1: [W NPUStream.cpp:365] "
     "Warning: NPU warning, error code is 107020[Error]: .\n",
     SIGNATURE_WATCHDOG},
    {"*** SIGSEGV (@(nil)), see gl__________41#s15 received by PID 11743 (TID 12350) on cpu 17; stack trace: "
     "***\nPC: @     0x7facba4a8de2  (unknown)  (unknown)\n",
     SIGNATURE_ABORT},
    {"E1224 22:35:53.165575   26868 real_program_continuator.cc:1331] 0x0x0_TC0: *** Halt is unexpected, all "
     "pending programs will fail. This is likely an XLA compiler bug, please file a bug\n",
     SIGNATURE_CHIP},
    {HEAD "RuntimeError: Magnitude of gradient is bad: -nan\n", SIGNATURE_NUMERIC},
    {"    16/999     7.38G   0.03433   0.01034   0.01147   0.05613       130       800:  85%|███▌ | 23/27 "
     "[00:15<00:02,  1.66it/s]WARNING: non-finite loss, ending training  tensor([nan, nan, nan, nan], "
     "device='cuda:0')\n",
     SIGNATURE_NUMERIC},
    {"Epoch 1:  1%| | 1/10 [00:01<00:22, loss=nan]\nEpoch 1:  2%| | 2/10 [00:01<00:22, loss=2.4]\nEpoch 1:  "
     "3%| | 3/10 [00:01<00:22, loss=2.3]\n",
     SIGNATURE_NONE},
    {"Epoch 1:  1%| | 1/10 [00:01<00:22, loss=2.3]\nValueError: bad batch\n", SIGNATURE_TRACEBACK},
};

/* Errors behind the head of a logger or a host, words that only look like numbers, run-times and loaders. */
static const struct row heads_rows[] = {
    {"[rank0]:[E1128 ProcessGroupNCCL.cpp:542] [Rank 0] Heartbeat monitor timed out! Process will be "
     "terminated after dumping debug info. workMetaList_.size()=3\n",
     SIGNATURE_WATCHDOG},
    {"RuntimeError: [Rank 1] Caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
     "Timeout(ms)=1800000) ran for 1800116 milliseconds before timing out.\n",
     SIGNATURE_WATCHDOG},
    {"ConnectionError: Tried to launch distributed communication on port `29500`, but another process is "
     "utilizing it.\n",
     SIGNATURE_ADDRESS},
    {"RuntimeError: HCCL... EZ1001: x\nEZ9999: Inner Error!\n", SIGNATURE_CHIP},
    {"RuntimeError: Device-side assertion tripped\n", SIGNATURE_CHIP},
    {"RuntimeError: Invalid HABANA_VISIBLE_MODULES=5. Module IDs should be between 0 and 0.\n",
     SIGNATURE_CHIP_MISSING},
    {"jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: Couldn't mmap: Resource temporarily "
     "unavailable.; TPU\n",
     SIGNATURE_CHIP},
    {"cgroup: fork rejected by pids controller in /docker/x\n", SIGNATURE_DESCRIPTORS},
    {"n1: ValueError: bad\n", SIGNATURE_TRACEBACK},
    {"{\"level\":\"error\",\"msg\":\"ValueError: bad shape\"}\n", SIGNATURE_TRACEBACK},
    {"level=error msg=\"RuntimeError: bad\"\n", SIGNATURE_TRACEBACK},
    {"2026-11-28T10:00:00.123Z [error] RuntimeError: bad shape\n", SIGNATURE_TRACEBACK},
    {"Fatal error: RuntimeError: bad\n", SIGNATURE_TRACEBACK},
    {"train failed with RuntimeError: bad\nstep 3\n", SIGNATURE_TRACEBACK},
    {"!!! Exception: ValueError('bad')\n", SIGNATURE_TRACEBACK},
    {"Training crashed: TypeError: unsupported operand\n", SIGNATURE_TRACEBACK},
    {"ValueError: unknown value 'nan' for option\n", SIGNATURE_TRACEBACK},
    {"ValueError: invalid literal for int() with base 10: 'inf'\n", SIGNATURE_TRACEBACK},
    {"FileNotFoundError: [Errno 2] No such file or directory: '/data/nan/inf.txt'\n", SIGNATURE_TRACEBACK},
    {"RuntimeError: expected finite, use torch.inf or allow_nan\n", SIGNATURE_TRACEBACK},
    {"Aborted at 1732442400 (unix time) try \"date -d @1732442400\" if you are using GNU date\nPC: @ 0x0 "
     "(unknown)\n",
     SIGNATURE_ABORT},
    {"Check failed: x == y (3 vs. 4) \n", SIGNATURE_ABORT},
    {"external/x.cc:3] Check failed: ok\n", SIGNATURE_ABORT},
    {"unexpected fault address 0x7f\nfatal error: fault\n", SIGNATURE_ABORT},
    {"SIGABRT: abort\nPC=0x7f m=0 sigcode=18446744073709551610\n", SIGNATURE_ABORT},
    {"OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\n", SIGNATURE_ABORT},
    {"Intel MKL FATAL ERROR: Cannot load libmkl_avx512.so\n", SIGNATURE_ABORT},
    {"BLAS : Program is Terminated. Because you tried to allocate too many memory regions.\n",
     SIGNATURE_ABORT},
    {"mimalloc: error: double free detected\n", SIGNATURE_ABORT},
    {"/lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./train)\n", SIGNATURE_ABORT},
    {"./train: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by ./train)\n",
     SIGNATURE_ABORT},
    {"exec format error: ./train\n", SIGNATURE_ABORT},
    {"Inconsistency detected by ld.so: dl-open.c\n", SIGNATURE_ABORT},
};

static void ends_of_numbers(void **state)
{
    (void)state;
    CHECK_ROWS(numbers_rows);
}

static void ends_of_programs(void **state)
{
    (void)state;
    CHECK_ROWS(programs_rows);
}

static void ends_of_peers(void **state)
{
    (void)state;
    CHECK_ROWS(peers_rows);
}

static void ends_of_surroundings(void **state)
{
    (void)state;
    CHECK_ROWS(surroundings_rows);
}

static void ends_of_chips(void **state)
{
    (void)state;
    CHECK_ROWS(chips_rows);
}

static void ends_of_survived(void **state)
{
    (void)state;
    CHECK_ROWS(survived_rows);
}

static void ends_of_real(void **state)
{
    (void)state;
    CHECK_ROWS(real_rows);
}

static void ends_of_heads(void **state)
{
    (void)state;
    CHECK_ROWS(heads_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_numbers), cmocka_unit_test(ends_of_programs),
        cmocka_unit_test(ends_of_peers),   cmocka_unit_test(ends_of_surroundings),
        cmocka_unit_test(ends_of_chips),   cmocka_unit_test(ends_of_survived),
        cmocka_unit_test(ends_of_real),    cmocka_unit_test(ends_of_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
