/* Ends of logs in the wording of newer libraries: torch 2.x, NCCL 2.2x, JAX, ROCm 6, CANN 8, and clients of
 * stores and databases. test_signature_rules.c has the older ones. */
#include "signature_rows.h"

#define HEAD                                                                                                 \
    "Traceback (most recent call last):\n  File \"/app/train.py\", line 31, in <module>\n    main()\n"
#define TRACE(last) HEAD last "\n"
#define R3(last)                                                                                             \
    "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/app/train.py\", line 31, in "           \
    "<module>\n[rank3]:     main()\n[rank3]: " last "\n"
#define STEPS "step 7 loss 2.41\nstep 8 loss 2.40\n"

/* Communication: NCCL 2.2x, gloo, torch's store and rendezvous, HCCL, InfiniBand, JAX's coordination. */
static const struct row peers_rows[] = {
    {R3("torch.distributed.DistBackendError: NCCL error in: "
        "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled cuda error (run with "
        "NCCL_DEBUG=INFO for details), NCCL version 2.26.2") "[rank3]: ncclUnhandledCudaError: Call to CUDA "
                                                             "function failed.\n[rank3]: Last "
                                                             "error:\n[rank3]: Failed to CUDA calloc async "
                                                             "608 bytes\n",
     SIGNATURE_CHIP_MEMORY},
    {R3("torch.distributed.DistBackendError: NCCL error in: "
        "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled cuda error (run with "
        "NCCL_DEBUG=INFO for details), NCCL version 2.26.2") "[rank3]: ncclUnhandledCudaError: Call to CUDA "
                                                             "function failed.\n[rank3]: Last "
                                                             "error:\n[rank3]: Cuda failure 217 'peer access "
                                                             "is not supported between these two devices'\n",
     SIGNATURE_CHIP},
    {R3("torch.distributed.DistBackendError: NCCL error in: "
        "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled cuda error (run with "
        "NCCL_DEBUG=INFO for details), NCCL version 2.26.2") "[rank3]: ncclUnhandledCudaError: Call to CUDA "
                                                             "function failed.\n[rank3]: Last "
                                                             "error:\n[rank3]: Cuda failure 214 "
                                                             "'uncorrectable ECC error encountered'\n",
     SIGNATURE_CHIP_BROKEN},
    {R3("torch.distributed.DistBackendError: NCCL error in: "
        "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, remote process exited or there was "
        "a network error, NCCL version 2.26.2") "[rank3]: ncclRemoteError: A call failed possibly due to a "
                                                "network error or a remote process exiting "
                                                "prematurely.\n[rank3]: Last error:\n[rank3]: NET/IB: Got "
                                                "completion from peer 10.1.1.1<4444> with "
                                                "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) "
                                                "reqSize=0 vendor_err=129 req_type=Send localGid fe80::1 "
                                                "remoteGidsfe80::2 hca mlx5_0\n",
     SIGNATURE_NETWORK},
    {"n1:7:9 [3] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n",
     SIGNATURE_NETWORK},
    {"n1:7:9 [3] misc/ibvwrap.cc:254 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, "
     "on dev mlx5_3:1, curr state INIT, next state RTR, local GID index 3\n",
     SIGNATURE_NETWORK},
    {"n1:7:9 [3] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate "
     "memory\n" R3(
         "torch.distributed.DistBackendError: NCCL error in: "
         "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled system error, NCCL "
         "version 2.21.5") "[rank3]: ncclSystemError: System call (e.g. socket, malloc) or external library "
                           "call failed or device error.\n[rank3]: Last error:\n[rank3]: Call to "
                           "ibv_reg_mr_iova2 failed with error Cannot allocate memory\n",
     SIGNATURE_MEMORY},
    {"[rank0]:[F1124 10:00:00.000 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 0] "
     "Terminating the process after attempting to dump debug info, due to collective timeout or exception.\n",
     SIGNATURE_WATCHDOG},
    {"[rank4]:[E1124 10:00:00.000 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 4] Received "
     "a dump signal due to a collective timeout from  rank 3 and we will try our best to dump the debug "
     "info. Last enqueued NCCL work: 12, last completed NCCL work: 10.This is most likely caused by "
     "incorrect usages of collectives, e.g., wrong sizes used across ranks, the order of collectives is not "
     "same for all ranks or the scheduled collective, for some reason, didn't run. Additionally, this can be "
     "caused by GIL deadlock or other reasons such as network errors or bugs in the communications library "
     "(e.g. NCCL), etc. \n",
     SIGNATURE_WATCHDOG},
    {"[rank3]:[E1124 10:00:00.000 ProcessGroupNCCL.cpp:684] [Rank 3] Some NCCL operations have failed or "
     "timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
     "corrupted/incomplete data.\n[rank3]:[E1124 10:00:00.000 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog "
     "caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
     "Timeout(ms)=600000) ran for 600075 milliseconds before timing out.\n",
     SIGNATURE_WATCHDOG},
    {R3("torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did "
        "the remote server shutdown or crash?"),
     SIGNATURE_PEER},
    {TRACE("torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying "
           "to connect to (10.0.0.1, 29500)."),
     SIGNATURE_PEER},
    {TRACE("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d "
           "store has failed. See inner exception for details."),
     SIGNATURE_PEER},
    {R3("torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//0"),
     SIGNATURE_WATCHDOG},
    {TRACE("RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
           "1800000ms for recv operation to complete"),
     SIGNATURE_WATCHDOG},
    {TRACE("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:552] Connection closed by "
           "peer [10.0.0.7]:33214"),
     SIGNATURE_PEER},
    {R3("RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[2]), but Rank 3 is running "
        "collective: CollectiveFingerPrint(SequenceNumber=3, OpType=BROADCAST)"),
     SIGNATURE_TRACEBACK},
    {R3("AssertionError: Rank 7: found NaN in local grad norm in backward pass before data-parallel "
        "communication collective. Device: 7, node: n1"),
     SIGNATURE_NUMERIC},
    {R3("RuntimeError: found NaN in local grad norm for bucket #3 in backward pass before data-parallel "
        "communication collective (device=7, node=n1)"),
     SIGNATURE_NUMERIC},
    {"[1732442400.1] [n1:77   :0] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB (synd "
     "0x15 vend 0x81 hw_synd 0/0)\n[1732442400.1] [n1:77   :0] ib_mlx5_log.c:177  RC QP 0x1a3 wqe[3]: "
     "RDMA_WRITE s-- [rva 0x7f rkey 0x1] [va 0x7f len 8192 lkey 0x2]\n",
     SIGNATURE_NETWORK},
    {"F1124 10:00:40.000000 77 rendezvous.cc:127] Termination timeout for `acquire clique for rank 3; "
     "clique=devices=[0,1,2,3]` of 40 seconds exceeded. Exiting to ensure a consistent program state. "
     "Expected 4 threads to join the rendezvous, but only 3 of them arrived on time.\n",
     SIGNATURE_WATCHDOG},
    {"F0000 00:00:1732442400.000000      77 client.h:77] Terminating process because the JAX distributed "
     "service detected fatal errors. This most likely indicates that another task died; see the other task "
     "logs for more details.\n*** Check failure stack trace: ***\n",
     SIGNATURE_PEER},
    {"n1:7:9 [0] /rccl/src/include/alloc.h:120 NCCL WARN HIP failure 'out of memory'\n" R3(
         "torch.distributed.DistBackendError: NCCL error in: "
         "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled cuda error, NCCL version "
         "2.20.5") "[rank3]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank3]: Last "
                   "error:\n[rank3]: HIP failure 'out of memory'\n",
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: SUSPECT REMOTE ERROR.") "[ERROR] 2026-11-24-10:00:00 (PID:77, Device:3, RankID:3) "
                                                  "ERR02200 DIST call hccl api failed.\n",
     SIGNATURE_PEER},
    {TRACE("RuntimeError: HCCL OP RETRY FAILED.") "[ERROR] 2026-11-24-10:00:00 (PID:77, Device:3, RankID:3) "
                                                  "ERR02200 DIST call hccl api failed.\n",
     SIGNATURE_PEER},
    {"[rank1]: EI0005: The arguments for collective communication are inconsistent between ranks: tag "
     "[AllReduce], parameter [count], local [8], remote [4]\n",
     SIGNATURE_TRACEBACK},
    {"terminate called after throwing an instance of 'gloo::IoException'\n  what():  "
     "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
     "[10.0.0.7]:33214\nAborted (core dumped)\n",
     SIGNATURE_PEER},
    {TRACE("torch.distributed.DistNetworkError: The client socket has failed to connect to any network "
           "address of (master-0.svc, 29500). The IPv4 network addresses of (master-0.svc, 29500) cannot be "
           "retrieved (gai error: -2 - Name or service not known)."),
     SIGNATURE_NAME},
    {TRACE("RuntimeError: The server socket has failed to connect: Connection refused"), SIGNATURE_PEER},
    {"n1:7:9 [0] include/alloc.h:239 NCCL WARN Failed to CUDA calloc async 4 bytes\n", SIGNATURE_CHIP_MEMORY},
    {R3("RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
        "key-value store by store->get('0'), but store->get('0') got error: Connection reset by peer"),
     SIGNATURE_PEER},
    {R3("torch.distributed.DistBackendError: [7] is setting up NCCL communicator and retrieving ncclUniqueId "
        "from [0] via c10d key-value store by store->get('0:1'), but store->get('0:1') got error: wait "
        "timeout after 600000ms, keys: /default_pg/0//cuda//0:1"),
     SIGNATURE_WATCHDOG},
    {R3("torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3.  Original reason for "
        "failure was: watchdog caught collective operation timeout"),
     SIGNATURE_WATCHDOG},
    {TRACE("RuntimeError: Background loop: Timeout at NCCL work: 7, last enqueued NCCL work: 9, last "
           "completed NCCL work: 6."),
     SIGNATURE_WATCHDOG},
    {"2026-11-24 10:00:00.000000: E torch/csrc/distributed/c10d/ProcessGroupHCCL.cpp:587] HCCL watchdog "
     "caught collective operation timeout\n",
     SIGNATURE_WATCHDOG},
    {TRACE("RuntimeError: Connection reset by peer. This may indicate a possible application crash on rank 1 "
           "or a network set up issue."),
     SIGNATURE_PEER},
    {"[rank2]:[E1124 10:00:00.000 ProcessGroupNCCL.cpp:1413] [PG ID 0 PG GUID 0(default_pg) Rank 2] "
     "Heartbeat monitor timed out! Process will be terminated after dumping debug info. "
     "workMetaList_.size()=8\n",
     SIGNATURE_WATCHDOG},
    {R3("torch.distributed.DistBackendError: Unconvertible NCCL type Short"), SIGNATURE_TRACEBACK},
    {TRACE("grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n\tstatus = "
           "StatusCode.UNAVAILABLE\n\tdetails = \"failed to connect to all addresses\""),
     SIGNATURE_PEER},
    {TRACE("grpc.aio._call.AioRpcError: <AioRpcError of RPC that terminated with:\n\tstatus = "
           "StatusCode.INVALID_ARGUMENT\n\tdetails = \"negative index\""),
     SIGNATURE_TRACEBACK},
    {"n1:7:9 [0] NCCL WARN NET/OFI Request 0x7f completed with error. RC: 113. Error: Unreachable remote\n",
     SIGNATURE_NETWORK},
};

static void peers(void **state)
{
    (void)state;
    CHECK_ROWS(peers_rows);
}

/* Numbers that are not finite, and words that only look so. */
static const struct row numbers_rows[] = {
    {TRACE("Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."),
     SIGNATURE_NUMERIC},
    {"ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #120 invocation "
     "#1 (message='found NaN in local forward loss calculation')\n",
     SIGNATURE_NUMERIC},
    {TRACE("ValueError: The loss returned in `training_step` is nan."), SIGNATURE_NUMERIC},
    {TRACE("ValueError: Detected nan and/or inf values in `layer.weight`. Check your forward pass for "
           "numerically unstable operations."),
     SIGNATURE_NUMERIC},
    {TRACE("jax._src.checkify.JaxRuntimeError: nan generated by primitive: log."), SIGNATURE_NUMERIC},
    {"completed step: 12, seconds: 1.2, TFLOP/s/device: 100.1, Tokens/s/device: 1000.0, total_weights: 1000, "
     "loss: nan\n",
     SIGNATURE_NUMERIC},
    {" iteration      100/    1000 | consumed samples:        25600 | elapsed time per iteration (ms): "
     "1234.5 | learning rate: 1.000E-04 | global batch size:   256 | lm loss: NAN | loss scale: 1.0 | number "
     "of skipped iterations:   0 | number of nan iterations:   1 |\n",
     SIGNATURE_NUMERIC},
    {" iteration      100/    1000 | consumed samples:        25600 | elapsed time per iteration (ms): "
     "1234.5 | learning rate: 1.000E-04 | global batch size:   256 | lm loss: 2.103E+00 | loss scale: 1.0 | "
     "number of skipped iterations:   0 | number of nan iterations:   0 |\n",
     SIGNATURE_NONE},
    {TRACE("RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it "
           "cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, "
           "set `error_if_nonfinite=False`"),
     SIGNATURE_NUMERIC},
    {TRACE("AttributeError: `np.Inf` was removed in the NumPy 2.0 release. Use `np.inf` instead."),
     SIGNATURE_TRACEBACK},
    {TRACE("ImportError: cannot import name 'nan' from 'numpy'"), SIGNATURE_TRACEBACK},
    {TRACE("ValueError: Loss is NaN at step 100"), SIGNATURE_NUMERIC},
    {"[rank0]: step 100 | loss 2.1\n[rank0]: NaN or Inf found in input tensor.\n[rank0]: step 101 | loss "
     "nan\n",
     SIGNATURE_NUMERIC},
    {"{\"step\": 101, \"loss\": NaN, \"lr\": 1e-4}\n", SIGNATURE_NUMERIC},
    {"Epoch 3:  10%|#         | 10/100 [00:10<01:30,  1.00it/s, v_num=0, train_loss=nan.0]\n",
     SIGNATURE_NUMERIC},
    {"Epoch 3:  10%|#         | 10/100 [00:10<01:30,  1.00it/s, v_num=0, train_loss=2.30]\n", SIGNATURE_NONE},
    {TRACE("AssertionError: Training diverged: loss is inf"), SIGNATURE_NUMERIC},
    {TRACE("RuntimeError: Function 'SoftmaxBackward0' returned nan values in its 0th output."),
     SIGNATURE_NUMERIC},
    {"step 7 loss 2.41 grad_norm inf, skipping the update\nstep 8 loss 2.40\n", SIGNATURE_NONE},
};

static void numbers(void **state)
{
    (void)state;
    CHECK_ROWS(numbers_rows);
}

/* Object stores, hubs, databases and file systems. */
static const struct row services_rows[] = {
    {"[rank0]: torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
     "ranks:dict_keys([3])\n[rank0]: Traceback (most recent call last): (RANK 3)\n[rank0]:   File "
     "\"utils.py\", line 3, in f\n[rank0]:     g()\n[rank0]: OSError: [Errno 28] No space left on device\n",
     SIGNATURE_DISK_FULL},
    {TRACE("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer"),
     SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 70] Communication error on send: '/beegfs/data/7.tar'"), SIGNATURE_STORAGE},
    {TRACE("fsspec.exceptions.FSTimeoutError"), SIGNATURE_SERVICE},
    {TRACE("requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, "
           "'Connection reset by peer'))"),
     SIGNATURE_SERVICE},
    {TRACE("huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: "
           "https://huggingface.co/api/x"),
     SIGNATURE_SERVICE},
    {TRACE("redis.exceptions.ConnectionError: Error 111 connecting to redis:6379. Connection refused."),
     SIGNATURE_SERVICE},
    {TRACE("sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server at \"db\" "
           "(10.0.0.1), port 5432 failed: Connection refused"),
     SIGNATURE_SERVICE},
    {TRACE("pymongo.errors.ServerSelectionTimeoutError: mongo:27017: [Errno 111] Connection refused, "
           "Timeout: 30s"),
     SIGNATURE_SERVICE},
    {TRACE("urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='s3', port=443): Max retries exceeded "
           "with url: /b (Caused by ResponseError('too many 503 error responses'))"),
     SIGNATURE_SERVICE},
    {TRACE("urllib3.exceptions.ProtocolError: ('Connection aborted.', ConnectionResetError(104, 'Connection "
           "reset by peer'))"),
     SIGNATURE_SERVICE},
    {TRACE("botocore.exceptions.IncompleteReadError: 8192 read, but total bytes expected is 65536."),
     SIGNATURE_SERVICE},
    {TRACE("s3torchconnectorclient._mountpoint_s3_client.S3Exception: Client error: Unknown response error: "
           "MetaRequestResult { response_status: 503, crt_error: Error(14342) }"),
     SIGNATURE_SERVICE},
    {TRACE("botocore.exceptions.NoCredentialsError: Unable to locate credentials"), SIGNATURE_TRACEBACK},
    {"WARNING:urllib3.connectionpool:Retrying (Retry(total=2, connect=None, read=None, redirect=None, "
     "status=None)) after connection broken by 'NewConnectionError('Failed to establish a new connection: "
     "[Errno 111] Connection refused')': /x\n" STEPS,
     SIGNATURE_NONE},
    {"/usr/bin/python3: can't open file '/lustre/app/train.py': [Errno 5] Input/output error\n",
     SIGNATURE_STORAGE},
    {TRACE("pymysql.err.OperationalError: (2003, \"Can't connect to MySQL server on 'db' ([Errno 111] "
           "Connection refused)\")"),
     SIGNATURE_SERVICE},
    {TRACE("sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) no such table: runs"),
     SIGNATURE_TRACEBACK},
    {TRACE(
         "redis.exceptions.ResponseError: WRONGTYPE Operation against a key holding the wrong kind of value"),
     SIGNATURE_TRACEBACK},
    {TRACE("kafka.errors.NoBrokersAvailable: NoBrokersAvailable"), SIGNATURE_SERVICE},
    {TRACE("requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(8192 bytes read, 4 "
           "more expected)', IncompleteRead(8192 bytes read, 4 more expected))"),
     SIGNATURE_SERVICE},
    {TRACE("httpx.ConnectTimeout: timed out"), SIGNATURE_SERVICE},
    {TRACE("openai.APIConnectionError: Connection error."), SIGNATURE_SERVICE},
    {TRACE("huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: "
           "https://huggingface.co/api/x"),
     SIGNATURE_SERVICE},
    {TRACE("azure.core.exceptions.HttpResponseError: Operation returned an invalid status 'The server is "
           "busy.'") "ErrorCode:ServerBusy\n",
     SIGNATURE_SERVICE},
    {TRACE("oss2.exceptions.RequestError: {'status': -2, 'x-oss-request-id': '', 'details': \"RequestError: "
           "HTTPSConnectionPool(host='b.oss', port=443): Read timed out.\"}"),
     SIGNATURE_SERVICE},
    {TRACE("minio.error.ServerError: server failed with HTTP status code 503"), SIGNATURE_SERVICE},
    {TRACE("urllib.error.HTTPError: HTTP Error 503: Service Unavailable"), SIGNATURE_SERVICE},
    {TRACE("urllib.error.HTTPError: HTTP Error 404: Not Found"), SIGNATURE_TRACEBACK},
    {TRACE("http.client.RemoteDisconnected: Remote end closed connection without response"),
     SIGNATURE_SERVICE},
    {TRACE("mlflow.exceptions.MlflowException: API request to http://mlflow:5000/api failed with exception "
           "HTTPConnectionPool(host='mlflow', port=5000): Max retries exceeded with url: /api (Caused by "
           "ResponseError('too many 500 error responses'))"),
     SIGNATURE_SERVICE},
    {TRACE("OSError: [Errno 5] Input/output error: '/mnt/gpfs/ckpt/7.pt'"), SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 116] Stale file handle"), SIGNATURE_STORAGE},
    {TRACE("BlockingIOError: [Errno 11] Resource temporarily unavailable: '/lustre/data'"),
     SIGNATURE_STORAGE},
    {TRACE("RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 448 vs 342"),
     SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 122] Disk quota exceeded: '/data/x/ckpt'"), SIGNATURE_DISK_FULL},
    {TRACE(
         "asyncpg.exceptions.ConnectionDoesNotExistError: connection was closed in the middle of operation"),
     SIGNATURE_SERVICE},
    {TRACE("asyncpg.exceptions.UndefinedTableError: relation \"runs\" does not exist"), SIGNATURE_TRACEBACK},
};

static void services(void **state)
{
    (void)state;
    CHECK_ROWS(services_rows);
}

/* CUDA, ROCm, Ascend, Gaudi, TPU: the program's errors, broken chips, missing ones, drivers. */
static const struct row chips_rows[] = {
    {TRACE("RuntimeError: CUDA error: the launch timed out and was terminated"), SIGNATURE_CHIP},
    {TRACE("torch.AcceleratorError: CUDA error: misaligned address"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu."),
     SIGNATURE_DRIVER},
    {TRACE("RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update "
           "your GPU driver"),
     SIGNATURE_DRIVER},
    {TRACE("RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before "
           "calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility "
           "was attempted on non supported HW"),
     SIGNATURE_DRIVER},
    {TRACE("pynvml.NVMLError_GpuIsLost: GPU is lost"), SIGNATURE_CHIP_BROKEN},
    {TRACE("pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded"), SIGNATURE_DRIVER},
    {TRACE("pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch."),
     SIGNATURE_DRIVER},
    {TRACE("RuntimeError: FlashAttention only supports Ampere GPUs or newer."), SIGNATURE_TRACEBACK},
    {TRACE(
         "jax.errors.JaxRuntimeError: FAILED_PRECONDITION: The program continuator has halted unexpectedly."),
     SIGNATURE_CHIP},
    {TRACE(
         "jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: "
         "[Init]PjRT_Client_Connect::0. This usually happens because a task triggered the barrier too early "
         "or too slowly. Please look at the task logs (both timed out and first task) to debug further."),
     SIGNATURE_WATCHDOG},
    {TRACE("jax.errors.JaxRuntimeError: INVALID_ARGUMENT: Executable expected parameter 0 of size 1024 but "
           "got buffer with incompatible size 512"),
     SIGNATURE_TRACEBACK},
    {TRACE("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory "
           "access was encountered"),
     SIGNATURE_CHIP},
    {"HW Exception by GPU node-2 (Agent handle: 0x55) reason :GPU Hang\nAborted (core dumped)\n",
     SIGNATURE_CHIP},
    {"MIOpen(HIP): Error [Compile] 'hiprtcCompileProgram(prog.get(), c_options.size(), c_options.data())' "
     "naive_conv.cpp: HIPRTC_ERROR_COMPILATION (6)\n" TRACE("RuntimeError: miopenStatusUnknownError"),
     SIGNATURE_CHIP},
    {"/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory\n" STEPS, SIGNATURE_NONE},
    {TRACE("RuntimeError: UCE ERROR.") "[ERROR] 2026-11-24-10:00:00 (PID:77, Device:3, RankID:3) ERR00100 "
                                       "PTA call acl api failed.\n",
     SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: synStatus=8 [Device not found] Device acquire failed."), SIGNATURE_CHIP_MISSING},
    {TRACE("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"),
     SIGNATURE_TRACEBACK},
    {"../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [0,0,0], thread: [0,0,0] "
     "Assertion `srcIndex < srcSelectDimSize` failed.\n" TRACE(
         "RuntimeError: CUDA error: device-side assert triggered") "CUDA kernel errors might be "
                                                                   "asynchronously reported at some other "
                                                                   "API call\n",
     SIGNATURE_CHIP},
    {"E0000 00:00:1732442400.000000 77 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to "
     "register factory for plugin cuDNN when one has already been registered\n" STEPS,
     SIGNATURE_NONE},
    {"[rank0]:[W1124 10:00:00.000 ProcessGroupNCCL.cpp:4571] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 to "
     "perform barrier as devices used by this process are currently unknown. This can potentially cause a "
     "hang if this rank to GPU mapping is incorrect.\n" STEPS,
     SIGNATURE_NONE},
    {"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n" TRACE(
         "RuntimeError: CUDA error: unknown error"),
     SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: CUDA error: unknown error"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: SUSPECT MEM ERROR.") "[ERROR] 2026-11-24-10:00:00 (PID:77, Device:3, RankID:3) "
                                               "ERR00100 PTA call acl api failed.\n",
     SIGNATURE_CHIP_BROKEN},
    {TRACE(
         "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered") "Search for "
                                                                                    "`cudaErrorECCUncorrectab"
                                                                                    "le' in "
                                                                                    "https://docs.nvidia.com/"
                                                                                    "cuda/cuda-runtime-api/"
                                                                                    "group__CUDART__TYPES."
                                                                                    "html for more "
                                                                                    "information.\n",
     SIGNATURE_CHIP_BROKEN},
    {TRACE(
         "torch.AcceleratorError: CUDA error: an illegal memory access was encountered") "Search for "
                                                                                         "`cudaErrorIllegalAd"
                                                                                         "dress' in "
                                                                                         "https://"
                                                                                         "docs.nvidia.com/"
                                                                                         "cuda/"
                                                                                         "cuda-runtime-api/"
                                                                                         "group__CUDART__"
                                                                                         "TYPES.html for "
                                                                                         "more "
                                                                                         "information.\nCUDA "
                                                                                         "kernel errors "
                                                                                         "might be "
                                                                                         "asynchronously "
                                                                                         "reported at some "
                                                                                         "other API call, so "
                                                                                         "the stacktrace "
                                                                                         "below might be "
                                                                                         "incorrect.\n",
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
           "False."),
     SIGNATURE_CHIP_MISSING},
    {TRACE("AssertionError: CUDA is not available"), SIGNATURE_CHIP_MISSING},
    {TRACE("RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices. "
           "(set JAX_PLATFORMS='' to automatically choose an available backend)"),
     SIGNATURE_CHIP_MISSING},
    {TRACE(
         "RuntimeError: CUDA error: unspecified launch failure") "nvidia-smi: Unable to determine the device "
                                                                 "handle for GPU0000:3B:00.0: GPU is lost.  "
                                                                 "Reboot the system to recover this GPU\n",
     SIGNATURE_CHIP_BROKEN},
    {"nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown\n",
     SIGNATURE_DRIVER},
    {"Failed to initialize NVML: Unknown Error\n", SIGNATURE_DRIVER},
    {"Failed to initialize NVML: Driver Not Loaded\n", SIGNATURE_DRIVER},
    {"Failed to initialize NVML: GPU is lost\n", SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: Failed to infer device type"), SIGNATURE_CHIP_MISSING},
};

static void chips(void **state)
{
    (void)state;
    CHECK_ROWS(chips_rows);
}

/* Launchers, run-times, the kernel's memory killer, the user's own mistakes, and harmless noise. */
static const struct row programs_rows[] = {
    {TRACE("RuntimeError: Application timeout caused pair closure"), SIGNATURE_WATCHDOG},
    {TRACE("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:") "CalledProcessError: "
                                                                                  "Command '['/usr/bin/gcc', "
                                                                                  "'x.c']' returned non-zero "
                                                                                  "exit status 1.\n",
     SIGNATURE_TRACEBACK},
    {"E1124 10:00:00.000000 77 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -6) "
     "local_rank: 3 (pid: 77) of binary: /usr/bin/python\n" TRACE(
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ") "====\ntrain.py "
                                                                                "FAILED\n----\nFailures:\n  "
                                                                                "<NO_OTHER_FAILURES>\n----"
                                                                                "\nRoot Cause (first "
                                                                                "observed failure):\n[0]:\n  "
                                                                                "time      : "
                                                                                "2026-11-24_10:00:00\n  host "
                                                                                "     : n1\n  rank      : 3 "
                                                                                "(local_rank: 3)\n  exitcode "
                                                                                " : -6 (pid: 77)\n  "
                                                                                "error_file: <N/A>\n  "
                                                                                "traceback : Signal 6 "
                                                                                "(SIGABRT) received by PID "
                                                                                "77\n====\n",
     SIGNATURE_ABORT},
    {"E1124 10:00:00.000000 77 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) "
     "local_rank: 3 (pid: 77) of binary: /usr/bin/python\n" TRACE(
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ") "====\ntrain.py "
                                                                                "FAILED\n----\n[0]:\n  "
                                                                                "exitcode  : 1 (pid: 77)\n  "
                                                                                "error_file: <N/A>\n  "
                                                                                "traceback : To enable "
                                                                                "traceback see: "
                                                                                "https://pytorch.org/docs/"
                                                                                "stable/elastic/"
                                                                                "errors.html\n",
     SIGNATURE_NONE},
    {TRACE(
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ") "====\ntrain.py "
                                                                                "FAILED\n----\n[0]:\n  "
                                                                                "exitcode  : 1 (pid: 77)\n  "
                                                                                "error_file: /tmp/e.json\n  "
                                                                                "traceback : Traceback (most "
                                                                                "recent call last):\n    "
                                                                                "File \"a.py\", line 3, in "
                                                                                "f\n      g()\n  ValueError: "
                                                                                "x\n",
     SIGNATURE_TRACEBACK},
    {TRACE("subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned non-zero exit "
           "status 1."),
     SIGNATURE_TRACEBACK},
    {TRACE(
         "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.") "\tclass"
                                                                                                   "_name: "
                                                                                                   "W\n\t"
                                                                                                   "actor_id:"
                                                                                                   " 7\n",
     SIGNATURE_PEER},
    {TRACE("ray.exceptions.RayTaskError(ValueError): ray::train() (pid=77, ip=10.0.0.1)") "  File \"a.py\", "
                                                                                          "line 3, in "
                                                                                          "train\nValueError:"
                                                                                          " x\n",
     SIGNATURE_TRACEBACK},
    {"--------------------------------------------------------------------------\nPrimary job  terminated "
     "normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been "
     "aborted.\n--------------------------------------------------------------------------\n",
     SIGNATURE_NONE},
    {"--------------------------------------------------------------------------\nmpirun noticed that "
     "process rank 3 with PID 0 on node n1 exited on signal 11 (Segmentation fault).\n",
     SIGNATURE_ABORT},
    {"PRTE has lost communication with a remote daemon.\n\n  HNP daemon   : [prterun-n1-7@0,0] on node n1\n  "
     "Remote daemon: [prterun-n1-7@0,1] on node n2\n",
     SIGNATURE_PEER},
    {"[n1:77   :0:77] Caught signal 11 (Segmentation fault: address not mapped to object at address "
     "0x10)\n==== backtrace (tid:     77) ====\n",
     SIGNATURE_ABORT},
    {"slurmstepd: error: *** STEP 99.0 ON n1 CANCELLED AT 2026-11-24T10:00:00 DUE TO TIME LIMIT ***\n",
     SIGNATURE_NONE},
    {"slurmstepd: error: *** JOB 99 ON n1 CANCELLED AT 2026-11-24T10:00:00 DUE TO PREEMPTION ***\n",
     SIGNATURE_NONE},
    {TRACE("RuntimeError: unable to open shared memory object </torch_77_1> in read-write mode: Too many "
           "open files (24)"),
     SIGNATURE_DESCRIPTORS},
    {TRACE("OSError: [Errno 28] No space left on device: '/dev/shm/torch_77'"), SIGNATURE_SHARED_MEMORY},
    {"python: can't open file '/app/train.py': [Errno 2] No such file or directory\n", SIGNATURE_NONE},
    {"  File \"/app/train.py\", line 3\n    print x\n          ^\nSyntaxError: Missing parentheses in call "
     "to 'print'. Did you mean print(...)?\n",
     SIGNATURE_TRACEBACK},
    {"usage: train.py [-h] [--steps STEPS]\ntrain.py: error: unrecognized arguments: --foo\n",
     SIGNATURE_NONE},
    {TRACE(
         "pydantic_core._pydantic_core.ValidationError: 1 validation error for Config") "lr\n  Input should "
                                                                                        "be a valid number "
                                                                                        "[type=float_parsing,"
                                                                                        " input_value='a', "
                                                                                        "input_type=str]\n",
     SIGNATURE_TRACEBACK},
    {"terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily "
     "unavailable\nAborted (core dumped)\n",
     SIGNATURE_DESCRIPTORS},
    {"terminate called after throwing an instance of 'std::length_error'\n  what():  "
     "vector::_M_default_append\nAborted (core dumped)\n",
     SIGNATURE_ABORT},
    {"[n1:00077] *** Process received signal ***\n[n1:00077] Signal: Segmentation fault (11)\n[n1:00077] "
     "Signal code: Address not mapped (1)\n[n1:00077] Failing at address: 0x10\n",
     SIGNATURE_ABORT},
    {"Fatal Python error: none_dealloc: deallocating None\nPython runtime state: initialized\n",
     SIGNATURE_ABORT},
    {"[W1124 10:00:00.000 socket.cpp:759] [c10d] The client socket cannot be initialized to connect to "
     "[localhost]:29500 (errno: 97 - Address family not supported by protocol).\n" STEPS,
     SIGNATURE_NONE},
    {"n1:7:9 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network "
     "plugin.\nn1:7:9 [0] transport/net_ib.cc:200 NCCL WARN NET/IB : No device found.\n" STEPS,
     SIGNATURE_NONE},
    {"ERROR: ld.so: object 'libtcmalloc.so' from LD_PRELOAD cannot be preloaded (cannot open shared object "
     "file): ignored.\n" STEPS,
     SIGNATURE_NONE},
    {"wandb: Network error (ConnectionError), entering retry loop.\n" STEPS, SIGNATURE_NONE},
    {"Failed to save checkpoint at step 8: [Errno 28] No space left on device; will retry at the next "
     "interval\n" STEPS,
     SIGNATURE_NONE},
    {"Exception in thread Thread-3 (heartbeat):\n" TRACE("BrokenPipeError: [Errno 32] Broken pipe")
         STEPS TRACE("KeyError: 'labels'"),
     SIGNATURE_TRACEBACK},
    {TRACE("KeyboardInterrupt"), SIGNATURE_NONE},
    {"/var/spool/slurmd/job99/slurm_script: line 7:    77 Killed                  python "
     "train.py\nslurmstepd: error: Detected 1 oom_kill event in StepId=99.batch. Some of the step tasks have "
     "been OOM Killed.\n",
     SIGNATURE_OOM},
    {"/var/spool/slurmd/job99/slurm_script: line 7:    77 Killed                  python train.py\n",
     SIGNATURE_KILLED},
    {"srun: Force Terminated StepId=99.0\nsrun: error: n1: tasks 0-7: Terminated\n", SIGNATURE_NONE},
    {"python3: /build/src/tensor.cpp:31: void f(): Assertion `n > 0' failed.\nAborted (core dumped)\n",
     SIGNATURE_ABORT},
    {"thread 'main' panicked at src/main.rs:3:5:\nindex out of bounds: the len is 3 but the index is "
     "7\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
     SIGNATURE_ABORT},
    {"panic: runtime error: index out of range [7] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n",
     SIGNATURE_ABORT},
    {"Exception in thread \"main\" java.lang.NullPointerException: x\n\tat A.main(A.java:3)\n",
     SIGNATURE_TRACEBACK},
    {"#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at "
     "pc=0x00007f\n",
     SIGNATURE_ABORT},
    {"=================================================================\n==77==ERROR: AddressSanitizer: "
     "heap-buffer-overflow on address 0x60\n",
     SIGNATURE_ABORT},
    {"*** Error in `python': free(): invalid next size (fast): 0x00\n", SIGNATURE_ABORT},
    {"ERROR: Unexpected bus error encountered in worker. This might be caused by corrupt data.\nBus error "
     "(core dumped)\n",
     SIGNATURE_ABORT},
    {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory "
     "(shm).\n",
     SIGNATURE_SHARED_MEMORY},
    {"terminate called after throwing an instance of 'c10::Error'\n  what():  [enforce fail at "
     "alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 1024 "
     "bytes. Error code 12 (Cannot allocate memory)\n",
     SIGNATURE_MEMORY},
    {"[12345.678901] python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, "
     "oom_score_adj=999\n",
     SIGNATURE_OOM},
    {"Memory cgroup out of memory: Killed process 77 (pt_main_thread) total-vm:90012kB, anon-rss:88000kB, "
     "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:999\n",
     SIGNATURE_OOM},
    {"Memory cgroup out of memory: Killed process 77 (a b) total-vm:1kB\n", SIGNATURE_OOM},
    {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
     SIGNATURE_OOM},
    {"(raylet) [2026-11-24 10:00:00,000 E 77 77] (raylet) node_manager.cc:3092: 1 Workers (tasks / actors) "
     "killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node\n",
     SIGNATURE_OOM},
};

static void programs(void **state)
{
    (void)state;
    CHECK_ROWS(programs_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers), cmocka_unit_test(numbers),  cmocka_unit_test(services),
        cmocka_unit_test(chips), cmocka_unit_test(programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
