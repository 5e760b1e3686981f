/* What to do about each fault: one table; the first row that fits is the advice. */
#include "tools/doctor/doctor.h"

#include <string.h>

static const struct advice {
    enum wt_doctor_fault fault;
    const char *scheme; /* the beginning of one; NULL: any */
    const char *text;
} table[] = {
    {WT_DOCTOR_BAD_TIER, "rados",
     "Correct the tier's section: conf= and keyring= in the URL must name files that this user can "
     "read (for the daemon: user wafertier)."},
    {WT_DOCTOR_BAD_TIER, NULL,
     "Correct the tier's section; wafertierd --check-config tells more, docs/operations.md has the "
     "forms of URLs."},
    {WT_DOCTOR_FOLDER_MISSING, NULL,
     "If it belongs to a mount, mount it first; never make a folder in a mount's stead. Else: "
     "install -d -o wafertier -g wafertier PATH."},
    {WT_DOCTOR_MOUNT_MISSING, NULL,
     "Mount what belongs there (findmnt, systemctl list-units --type=mount, /etc/fstab); a local "
     "folder that is meant needs no mount=required."},
    {WT_DOCTOR_MOUNT_DEAD, NULL,
     "Its client (ceph-fuse?) died or lost its server: umount -l PATH, then mount it again; daemon "
     "and loaders find it by themselves."},
    {WT_DOCTOR_MOUNT_HANGS, NULL,
     "Its server does not answer: look at the server (ceph -s), or umount -f the mount and mount "
     "it "
     "again."},
    {WT_DOCTOR_UNREACHABLE, "redis",
     "Does redis-server run (redis-cli ping)? Do host, port or socket in the URL fit, and user and "
     "password (password_file=)? ACL LIST on the server shows its users."},
    {WT_DOCTOR_UNREACHABLE, "rados",
     "Is the cluster up (ceph -s)? Do mon_host in conf=, the key in keyring= of id=, and the pool "
     "in "
     "the URL fit? ceph auth get client.ID; ceph osd pool ls."},
    {WT_DOCTOR_UNREACHABLE, NULL, "Look at the file system's mount and server."},
    {WT_DOCTOR_DENIED, "file",
     "Give the folder to the user who runs this (chown wafertier PATH, rw in the mount's options); "
     "for those who only read set read_only = true in the tier's section."},
    {WT_DOCTOR_DENIED, "redis",
     "Give the user the ACL rules in docs/operations.md (ACL SETUSER); for those who only read set "
     "read_only = true in the tier's section."},
    {WT_DOCTOR_DENIED, "rados",
     "Give the client the caps in docs/operations.md (ceph auth caps client.ID mon 'allow r' osd "
     "'allow rwx pool=POOL'); for those who only read set read_only = true in the tier's section."},
    {WT_DOCTOR_FULL, "rados",
     "Make room or raise the quota: ceph df detail; ceph osd pool get-quota POOL; add OSDs. "
     "wafertier gc removes what nothing needs."},
    {WT_DOCTOR_FULL, "redis",
     "Raise maxmemory, or lower the tier's capacity so that the daemon keeps it below; see who "
     "else "
     "uses this Redis."},
    {WT_DOCTOR_FULL, NULL,
     "Make room in the file system, or lower the tier's capacity below what is there; wafertier gc "
     "removes what nothing needs."},
    {WT_DOCTOR_CORRUPT, NULL,
     "Do not trust this tier: look at its disks and memory (dmesg, smartctl, ceph health detail), "
     "and at its filter option. wafertier verify finds damaged shards."},
    {WT_DOCTOR_FAILS, NULL, "See the server's or the kernel's log (dmesg) for the cause."},
    {WT_DOCTOR_UNSTABLE, NULL,
     "See the server's log; the tier comes back by itself, but each time its readers go to a "
     "slower "
     "one."},
    {WT_DOCTOR_LEFT_OVER, NULL,
     "Give the right to remove (the daemon needs it to make room); wafertier gc then removes the "
     "probe, after a day."},
    {WT_DOCTOR_NOTHING_TO_READ, NULL, "Pack a data set, then look again."},
    {WT_DOCTOR_NO_USAGE, NULL,
     "Redis: +info in the user's ACL. A folder that is still being counted: look again. Without it "
     "the tier is full only when it says so."},
    {WT_DOCTOR_CAPACITY, NULL,
     "Lower the tier's capacity to what is there: a tier that is really full refuses moves instead "
     "of making room."},
    {WT_DOCTOR_MAXMEMORY, NULL,
     "CONFIG SET maxmemory to what this Redis may have, and put it in redis.conf: 10% less than "
     "the "
     "machine's memory."},
    {WT_DOCTOR_EVICTS, NULL,
     "CONFIG SET maxmemory-policy noeviction, and put it in redis.conf: the daemon decides what "
     "leaves."},
    {WT_DOCTOR_PERSISTS, NULL,
     "CONFIG SET appendonly no and save \"\": what lies there is a copy."},
    {WT_DOCTOR_NOT_FASTER, NULL,
     "Leave the tier out, or put it on faster storage (CephFS: a pool on a faster device class; "
     "Redis: near the readers, io-threads), or list the tiers in another order. See its filter "
     "option."},
    {WT_DOCTOR_SAME_DEVICE, NULL,
     "Leave the tier out, or put it on faster storage. To try wafertier on one machine it may "
     "stay."},
    {WT_DOCTOR_DAEMON_DOWN, NULL,
     "Start it: systemctl start wafertierd; journalctl -u wafertierd tells why it ended. If it "
     "runs "
     "elsewhere, set control = \"\" here: loaders go on without it, and ask the tiers."},
    {WT_DOCTOR_DAEMON_DENIED, NULL,
     "Become a member of the socket's group: usermod -aG wafertier USER (control_group, "
     "control_mode)."},
    {WT_DOCTOR_DAEMON_DEGRADED, NULL,
     "See the tiers above, and GET /v1/tiers for their last errors; if they are well from here, "
     "the "
     "daemon's user, mounts or network differ."},
    {WT_DOCTOR_DAEMON_STANDBY, NULL,
     "One daemon serves a set of tiers. If the other is not wanted, stop it: this one takes over. "
     "If "
     "it is dead, the lock expires by itself (lock_ttl)."},
    {WT_DOCTOR_LOCK_HELD, NULL,
     "A daemon runs elsewhere on these tiers: use its socket, or stop it. If it is dead, the lock "
     "expires by itself (lock_ttl)."},
    {WT_DOCTOR_MEMORY, NULL, "Lower the capacity of the tiers in memory, or free memory."},
    {WT_DOCTOR_OPEN_FILES, NULL,
     "Raise it: ulimit -n 4096; LimitNOFILE= in the unit; /etc/security/limits.conf."},
    {WT_DOCTOR_CLOCK, NULL,
     "Run chrony or systemd-timesyncd on every machine: leases and locks expire by the clock."},
};

const char *wt_doctor_advice(enum wt_doctor_fault fault, const char *scheme) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct advice *a = &table[i];
        if (a->fault == fault &&
            (!a->scheme || (scheme && strncmp(scheme, a->scheme, strlen(a->scheme)) == 0)))
            return a->text;
    }
    return "";
}
