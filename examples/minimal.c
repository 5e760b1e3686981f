/* Reads a data set once and counts its classes: minimal CONFIG DATASET. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <wafertier/loader.h>

int main(int argc, char **argv) {
    if (argc != 3)
        return fprintf(stderr, "usage: minimal CONFIG DATASET\n"), 2;
    wl_options options = WL_OPTIONS_INIT;
    options.config = argv[1];
    options.dataset = argv[2];
    options.batch = 64;
    options.tail = WL_TAIL_PAD; /* the last batch is filled up with rows that are not valid */
    wl_loader *loader;
    if (wl_open(NULL, &options, &loader) < 0)
        return fprintf(stderr, "%s\n", wl_last_error(NULL)->message), 1;
    wl_info info;
    wl_get_info(loader, &info);
    uint64_t *count = calloc(info.classes + 1, sizeof *count); /* the last one: unlabelled */
    wl_batch *batch;
    int rc;
    while ((rc = wl_next(loader, NULL, WL_FOREVER, &batch)) == WL_OK || rc == WL_END_OF_EPOCH) {
        if (rc == WL_END_OF_EPOCH)
            continue;
        const int32_t *label = wl_batch_tensor(batch, "label")->data;
        const uint8_t *valid = wl_batch_tensor(batch, "valid")->data;
        for (uint64_t i = 0; i < info.rank_batch && count; i++)
            count[label[i] < 0 ? info.classes : (uint32_t)label[i]] += valid[i];
        wl_batch_release(batch, NULL);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", wl_last_error(loader)->message);
    for (uint32_t c = 0; c <= info.classes && count; c++)
        if (count[c])
            printf("%-20s %" PRIu64 "\n",
                   c < info.classes ? wl_class_name(loader, c) : "(unlabelled)", count[c]);
    free(count);
    wl_close(loader);
    return rc < 0;
}
