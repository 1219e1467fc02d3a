# The files of the cuda back end that need nothing but CUDA's runtime: also built for a CPU, by tests/trainer/backend/cuda_emulator.
set(DDLRUN_CUDA_SOURCES backend.cc batch_norm.cc batch_norm_pair.cc expansion.cc graph.cc input.cc layout.cc loss.cc pooling.cc runtime.cc stem.cc update.cc)
set(DDLRUN_CUDA_KERNELS batch_norm_backward_kernels.cu batch_norm_kernels.cu batch_norm_pair_kernels.cu copy_kernels.cu difference_kernels.cu expansion_kernels.cu loss_kernels.cu pooling_kernels.cu stem_backward_passes.cu stem_forward_passes.cu stem_kernels.cu update_kernels.cu)
list(TRANSFORM DDLRUN_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM DDLRUN_CUDA_KERNELS PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
