// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Registers, interrupts, and the end of the device and of the module. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#define READ_WRITE	(PROT_READ | PROT_WRITE)
#define DRIVER		"/sys/bus/pci/drivers/cohkit/"

/* Registers of ivshmem, as words of 32 bit. */
#define POSITION	2
#define DOORBELL	3

/* Number of the host among the peers. */
#define HOST_PEER	0

/* Longest time for an interrupt, on a busy machine. */
#define TIMEOUT_MS	60000

static volatile uint32_t *map_registers(const struct cohkit *device)
{
	volatile uint32_t *registers =
		cohkit_map(device, COHKIT_WINDOW_REGISTERS, 0, 4096, READ_WRITE,
			   0);

	CHECK(registers);
	return registers;
}

/* Returns the number of interrupts that arrive, 0 after a timeout. */
static uint64_t wait_for(int event, int milliseconds)
{
	struct pollfd descriptor = { .fd = event, .events = POLLIN };
	uint64_t count;

	if (poll(&descriptor, 1, milliseconds) != 1)
		return 0;
	CHECK(read(event, &count, sizeof(count)) == sizeof(count));
	return count;
}

static void doorbell_interrupts_this_machine(void)
{
	struct cohkit device = open_granted();
	volatile uint32_t *registers = map_registers(&device);
	long long interrupts = sysfs_value("counters/interrupts");
	int first = cohkit_listen(&device, 0);
	int second = cohkit_listen(&device, 1);
	uint32_t own = registers[POSITION] << 16;

	CHECK(first >= 0 && second >= 0);
	registers[DOORBELL] = own | 1;
	CHECK(wait_for(second, TIMEOUT_MS) == 1);
	CHECK(wait_for(first, 0) == 0);
	registers[DOORBELL] = own;
	CHECK(wait_for(first, TIMEOUT_MS) == 1);
	CHECK(sysfs_value("counters/interrupts") == interrupts + 2);
}

static void host_answers_the_doorbell(void)
{
	struct cohkit device = open_granted();
	volatile uint32_t *registers = map_registers(&device);
	int event = cohkit_listen(&device, 0);

	CHECK(event >= 0);
	registers[DOORBELL] = HOST_PEER << 16;
	CHECK(wait_for(event, TIMEOUT_MS) == 1);
}

static void interrupts_end_with_the_right(void)
{
	struct cohkit device = open_granted();
	volatile uint32_t *registers = map_registers(&device);
	uint32_t own = registers[POSITION] << 16;
	int event = cohkit_listen(&device, 0);
	struct cohkit_eventfd none = { .vector = 0, .fd = -1 };
	struct cohkit_eventfd bad = { .vector = 0, .fd = 0 };

	CHECK(event >= 0);
	CHECK_ERROR(cohkit_listen(&device, 2) < 0, EINVAL);
	CHECK_ERROR(ioctl(device.fd, COHKIT_IOC_EVENTFD, &bad) < 0, EINVAL);
	CHECK(cohkit_revoke(device.fd, COHKIT_INTERRUPTS, 0, 1, COHKIT_READ) ==
	      0);
	registers[DOORBELL] = own;
	CHECK(wait_for(event, 200) == 0);
	CHECK_ERROR(cohkit_listen(&device, 0) < 0, EACCES);
	CHECK(cohkit_grant(device.fd, COHKIT_INTERRUPTS, 0, 1, COHKIT_READ) ==
	      0);
	event = cohkit_listen(&device, 0);
	CHECK(ioctl(device.fd, COHKIT_IOC_EVENTFD, &none) == 0);
	registers[DOORBELL] = own;
	CHECK(wait_for(event, 200) == 0);
	CHECK(cohkit_revoke(device.fd, COHKIT_REGISTERS, 0, 4096, ALL) == 0);
	CHECK(signal_of_load((volatile unsigned char *)registers) == SIGBUS);
}

static void write_text(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	CHECK(file >= 0);
	CHECK(write(file, text, strlen(text)) == (ssize_t)strlen(text));
	close(file);
}

/* PCI address of the device, as in "0000:00:04.0". */
static void read_address(char *address, size_t size)
{
	char target[256];
	char *last;
	ssize_t length = readlink("/sys/class/cohkit/cohkit0/device", target,
				  sizeof(target) - 1);

	CHECK(length > 0);
	target[length] = 0;
	last = strrchr(target, '/');
	CHECK(last);
	snprintf(address, size, "%s", last + 1);
}

/* As when the device is unplugged while programs use it. */
static void removed_device_ends_accesses(void)
{
	struct cohkit device = open_granted();
	unsigned char *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);
	volatile uint32_t *registers = map_registers(&device);
	int event = cohkit_listen(&device, 0);
	unsigned char *present;
	struct cohkit again;
	char address[64];

	CHECK(memory && event >= 0);
	memory[0] = 99;
	read_address(address, sizeof(address));
	write_text(DRIVER "unbind", address);
	CHECK(signal_of_load(memory) == SIGBUS);
	CHECK(signal_of_load((volatile unsigned char *)registers) == SIGBUS);
	CHECK_ERROR(ioctl(device.fd, COHKIT_IOC_INFO, &again.info) < 0, ENODEV);
	CHECK_ERROR(mmap(NULL, 4096, PROT_READ, MAP_SHARED, device.fd, 0) ==
		    MAP_FAILED, ENODEV);
	CHECK(munmap(memory, MIB) == 0);
	CHECK(signal_of_load(memory + MIB) == SIGBUS);
	write_text(DRIVER "bind", address);
	/* The old file keeps its number, so that the new device has the next. */
	CHECK(cohkit_open(&again, "/dev/cohkit2") == 0);
	CHECK(cohkit_grant(again.fd, COHKIT_MEMORY, 0, GIB, ALL) == 0);
	present = cohkit_map(&again, 0, 0, GIB, READ_WRITE, 1);
	CHECK(present && present[0] == 99);
	CHECK_ERROR(ioctl(device.fd, COHKIT_IOC_INFO, &again.info) < 0, ENODEV);
	/* Both numbers are free again after the last use of their files. */
	cohkit_close(&device);
	cohkit_close(&again);
	CHECK(munmap((void *)registers, 4096) == 0);
	CHECK(munmap(memory + MIB, GIB - MIB) == 0);
	CHECK(munmap(present, GIB) == 0);
	write_text(DRIVER "unbind", address);
	write_text(DRIVER "bind", address);
	CHECK(cohkit_open(&again, DEVICE) == 0);
}

static void module_stays_while_a_file_is_open(void)
{
	struct cohkit device = open_granted();
	void *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);
	int module;

	CHECK(memory);
	CHECK_ERROR(syscall(SYS_delete_module, "cohkit", O_NONBLOCK) < 0,
		    EAGAIN);
	cohkit_close(&device);
	/* A mapping keeps its file open. */
	CHECK_ERROR(syscall(SYS_delete_module, "cohkit", O_NONBLOCK) < 0,
		    EAGAIN);
	CHECK(munmap(memory, GIB) == 0);
	CHECK(syscall(SYS_delete_module, "cohkit", O_NONBLOCK) == 0);
	CHECK(access(DEVICE, F_OK) < 0);
	module = open("/cohkit.ko", O_RDONLY);
	CHECK(module >= 0);
	CHECK(syscall(SYS_finit_module, module, MODULE_PARAMETERS, 0) == 0);
	CHECK(chmod(DEVICE, 0666) == 0 && chmod(PAGED_DEVICE, 0666) == 0);
	device = open_granted();
}

const struct test device_tests[] = {
	{ "doorbell_interrupts_this_machine",
	  doorbell_interrupts_this_machine },
	{ "host_answers_the_doorbell", host_answers_the_doorbell },
	{ "interrupts_end_with_the_right", interrupts_end_with_the_right },
	{ "removed_device_ends_accesses", removed_device_ends_accesses },
	{ "module_stays_while_a_file_is_open",
	  module_stays_while_a_file_is_open },
	{ }
};
