/* Writes the tests' small data set and what examples/minimal.c must print of it: make_dataset
 * FOLDER. */
#include "loader_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kit reports through cmocka's failures; outside a test they end the program. */
int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    struct kit k;
    struct kit_shape shape = {
        .samples = 150, .per_shard = 16, .h = 8, .w = 8, .codec = WT_CODEC_ZSTD};
    kit_make(&k, &shape);
    char path[512], command[1024];
    snprintf(command, sizeof command, "cp -r '%s/cold' '%s/cold'", k.root, argv[1]);
    if (system(command) != 0)
        return 1;
    snprintf(path, sizeof path, "%s/loader.conf", argv[1]);
    FILE *f = fopen(path, "w");
    if (!f)
        return 1;
    fprintf(f, "tier \"cold\" { url = \"file://%s/cold\" read_only = true }\n", argv[1]);
    if (fclose(f) != 0)
        return 1;
    snprintf(path, sizeof path, "%s/expected", argv[1]);
    f = fopen(path, "w");
    if (!f)
        return 1;
    for (uint32_t c = 0; c < k.ds.m.n_classes; c++)
        fprintf(f, "%-20s %llu\n", k.ds.m.classes[c], (unsigned long long)k.ds.m.class_count[c]);
    fprintf(f, "%-20s %llu\n", "(unlabelled)",
            (unsigned long long)(k.ds.m.samples - k.ds.m.labelled));
    int rc = fclose(f);
    kit_free(&k);
    return rc != 0;
}
