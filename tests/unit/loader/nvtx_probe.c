/*
 * What a profiler does to NVTX, as small as it can be: takes the calls for pushed and popped ranges
 * (NVTX_INJECTION64_PATH names this library), counts them by name, and prints the counts when the
 * program ends.
 */
#include <nvtx3/nvToolsExt.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic long decode, stage, wait, stray;
static _Atomic long open_ranges;

static int on_push(const char *name) {
    _Atomic long *count = strcmp(name, "wafertier decode") == 0  ? &decode
                          : strcmp(name, "wafertier stage") == 0 ? &stage
                          : strcmp(name, "wafertier wait") == 0  ? &wait
                                                                 : &stray;
    (*count)++;
    open_ranges++;
    return 0;
}

static int on_pop(void) {
    open_ranges--;
    return 0;
}

__attribute__((destructor)) static void tell(void) {
    printf("nvtx: decode %ld, stage %ld, wait %ld, open %ld, stray %ld\n", decode, stage, wait,
           open_ranges, stray);
    fflush(stdout);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *tables = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!tables || !tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) ||
        size <= NVTX_CBID_CORE_RangePop)
        return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)on_push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)on_pop;
    return 1;
}
