/* For a fully static program: the part of libudev that hwloc calls, which Debian has as a shared
 * object only. hwloc does without udev when there is none.
 * Linked to receives.c and threads.c; what to expect is theirs. */
void *udev_new(void) { return 0; }
void *udev_unref(void *udev) { return 0; }
void *udev_device_new_from_subsystem_sysname(void *udev, char *subsystem, char *name) { return 0; }
void *udev_device_get_property_value(void *device, char *key) { return 0; }
void *udev_device_unref(void *device) { return 0; }
