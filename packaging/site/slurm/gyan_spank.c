/*
 * gyan for every job step, as a plugin of Slurm (SPANK). It sets LD_PRELOAD and GYAN_SITE for the tasks of job steps.
 *
 *     make                                                            builds gyan_spank.so
 *     optional gyan_spank.so library=FILE site=FILE [default=off] [partitions=A,B]     a line of plugstack.conf
 *
 * It leaves a task alone
 *   - in the step of a batch script, in the extern step, and in interactive steps (srun --pty, salloc)
 *   - where the step starts the daemon of another launcher: the processes that mpirun starts itself would be without it
 *   - if LD_PRELOAD has a libgyan.so already, which is that of a user's gyan run
 *   - if the user says --gyan=off, or GYAN=off in the environment
 *   - if the node does not have both files, or the user cannot read them.
 * No function returns an error for a task, so that nothing here ends a job. What it did not do is in the log of
 * slurmd at debug.
 */
#include <slurm/spank.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

SPANK_PLUGIN(gyan, 1)

enum { VALUE_BYTES = 32768 };

/* Step ids from here on are not those of srun's steps: batch, extern, interactive, pending. */
static const uint32_t FIRST_SPECIAL_STEP = 0xfffffff0;

/* Words of plugstack.conf. They live as long as the process. */
static const char *library;
static const char *site;
static const char *partitions;

static bool is_on = true;

static int choose(int value, const char *word, int remote)
{
    (void)value;
    if (word && strcasecmp(word, "off") == 0)
        is_on = false;
    else if (word && strcasecmp(word, "on") == 0)
        is_on = true;
    else if (!remote) {
        /* Only in srun, sbatch and salloc, before there is a job. */
        slurm_error("--gyan: %s: is neither on nor off", word ? word : "");
        return -1;
    }
    return 0;
}

/* The value of a word NAME=VALUE, or NULL. */
static const char *value_of(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

int slurm_spank_init(spank_t spank, int count, char *words[])
{
    static struct spank_option option = {"gyan", "on|off", "record for the site what the job does in MPI", 1, 0, choose};
    /* A table "spank_options" would not be for sbatch and salloc. */
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
        slurm_debug("gyan: the option --gyan cannot be registered");
    for (int i = 0; i < count; i++) {
        const char *value;
        if ((value = value_of(words[i], "library")))
            library = value;
        else if ((value = value_of(words[i], "site")))
            site = value;
        else if ((value = value_of(words[i], "partitions")))
            partitions = value;
        else if (strcmp(words[i], "default=off") == 0)
            is_on = false;
        else if (strcmp(words[i], "default=on") != 0)
            slurm_debug("gyan: plugstack.conf: %s: is unknown", words[i]);
    }
    return ESPANK_SUCCESS;
}

/* Whether one of the words of `list`, which are separated by any of `separators`, is `name` or a path that ends in it. */
static bool has_word(const char *list, const char *separators, const char *name)
{
    size_t length = strlen(name);
    for (;;) {
        list += strspn(list, separators);
        size_t bytes = strcspn(list, separators);
        if (bytes == 0)
            return false;
        const char *end = list + bytes;
        if (bytes >= length && strncmp(end - length, name, length) == 0
            && (bytes == length || end[-(ptrdiff_t)length - 1] == '/'))
            return true;
        list = end;
    }
}

/* Whether the step starts the daemon of another launcher on this node. */
static bool starts_daemon(spank_t spank)
{
    static const char *const daemons[] = {"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy"};
    int count = 0;
    char **words = NULL;
    if (spank_get_item(spank, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS || count < 1 || !words || !words[0])
        return false;
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; i++)
        /* No separator: a path may have any character. */
        if (has_word(words[0], "", daemons[i]))
            return true;
    return false;
}

/* Why this task is left alone, or NULL. */
static const char *reason_against(spank_t spank)
{
    char value[1024];
    uint32_t step = 0;
    if (!library || !site)
        return "plugstack.conf lacks library= or site=";
    if (!is_on)
        return "off";
    if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step >= FIRST_SPECIAL_STEP)
        return "no step of srun";
    if (spank_getenv(spank, "SLURM_PTY_PORT", value, sizeof value) == ESPANK_SUCCESS)
        return "interactive";
    if (spank_getenv(spank, "GYAN", value, sizeof value) == ESPANK_SUCCESS
        && (strcasecmp(value, "off") == 0 || strcasecmp(value, "no") == 0 || strcasecmp(value, "false") == 0
            || strcmp(value, "0") == 0))
        return "GYAN is off";
    if (partitions
        && (spank_getenv(spank, "SLURM_JOB_PARTITION", value, sizeof value) != ESPANK_SUCCESS
            || !has_word(partitions, ",", value)))
        return "another partition";
    if (starts_daemon(spank))
        return "the daemon of a launcher";
    if (access(library, R_OK) != 0)
        return "the library cannot be read";
    if (access(site, R_OK) != 0)
        return "the site file cannot be read";
    return NULL;
}

/* As the user, in the process that becomes the task. */
int slurm_spank_task_init(spank_t spank, int count, char *words[])
{
    (void)count;
    (void)words;
    char before[VALUE_BYTES];
    char preload[2 * VALUE_BYTES];
    const char *reason = reason_against(spank);
    if (!reason) {
        spank_err_t found = spank_getenv(spank, "LD_PRELOAD", before, sizeof before);
        if (found == ESPANK_ENV_NOEXIST)
            before[0] = '\0';
        else if (found != ESPANK_SUCCESS)
            reason = "LD_PRELOAD cannot be read";
    }
    if (!reason && has_word(before, ": ", "libgyan.so"))
        reason = "LD_PRELOAD has a libgyan.so";
    if (!reason) {
        int length = snprintf(preload, sizeof preload, "%s%s%s", library, before[0] ? ":" : "", before);
        if (length < 0 || (size_t)length >= sizeof preload)
            reason = "LD_PRELOAD is too long";
        else if (spank_setenv(spank, "LD_PRELOAD", preload, 1) != ESPANK_SUCCESS)
            reason = "the environment cannot be set";
        else
            /* A user's own value stays: GYAN_SITE=off makes the run the user's. */
            (void)spank_setenv(spank, "GYAN_SITE", site, 0);
    }
    if (reason)
        slurm_debug("gyan: not loaded: %s", reason);
    return ESPANK_SUCCESS;
}
