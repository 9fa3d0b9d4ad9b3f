/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * limits.h in user space, for the tests of src/kernel/limits.rs: reads a command with its
 * numbers per line and prints its result. `client` and `round` reset the state with "new".
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;

#include "limits.h"

#define DISTRUST_NS 3000000000ULL

int main(void)
{
    char line[512], what[16];
    struct client client = {0};
    struct round round = {0};
    u64 n[10], rest = 0;

    while (fgets(line, sizeof(line), stdin)) {
        u64 result = 0;

        memset(n, 0, sizeof(n));
        if (sscanf(line, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                   what, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9) < 1)
            return 1;
        if (!strcmp(what, "new")) {
            memset(&client, 0, sizeof(client));
            memset(&round, 0, sizeof(round));
            rest = 0;
        } else if (!strcmp(what, "most")) {
            result = most_bytes(n[0], n[1], n[2]);
        } else if (!strcmp(what, "part")) {
            result = part_packets(n[0], n[1], (u32)n[2], (s32)n[3]);
        } else if (!strcmp(what, "ack")) {
            result = is_undelivered(&round, n[0], (u32)n[1], (u32)n[2], (u32)n[3], (u32)n[4],
                                    n[5], n[6]);
            if (result)
                withdraw(&client, n[0], DISTRUST_NS);
        } else if (!strcmp(what, "loss")) {
            count_loss(&client, n[0], DISTRUST_NS, (int)n[1]);
            result = client.losses;
        } else if (!strcmp(what, "own")) {
            result = own_acked((u32)n[0], (u32)n[1], (u32)n[2], &rest);
        } else if (!strcmp(what, "believed")) {
            result = is_believed(&client, n[0]);
        } else if (!strcmp(what, "radios")) {
            result = is_radios((s32)n[0], (s32)n[1], n[2], n[3], n[4], n[5], n[6], (u32)n[7],
                               n[8], n[9]);
        } else {
            return 1;
        }
        printf("%" PRIu64 "\n", result);
    }
    return 0;
}
