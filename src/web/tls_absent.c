/*
 * libmicrohttpd's archive can do TLS, by GnuTLS, which we do not link: a page on a loopback address or behind a proxy has no use for it. These
 * are the names that it would call then. None is called without MHD_USE_TLS, but for the two that say that the library is ready.
 */
#include <stdlib.h>

int gnutls_global_init(void);
void gnutls_global_deinit(void);
extern void *(*gnutls_malloc)(size_t size);

int gnutls_global_init(void)
{
	return 0;
}

void gnutls_global_deinit(void)
{
}

void *(*gnutls_malloc)(size_t size) = malloc;

#define ABSENT(name)              \
	void gnutls_##name(void); \
	void gnutls_##name(void)  \
	{                         \
		abort();          \
	}

ABSENT(alpn_set_protocols)
ABSENT(bye)
ABSENT(certificate_allocate_credentials)
ABSENT(certificate_free_credentials)
ABSENT(certificate_server_set_request)
ABSENT(certificate_set_dh_params)
ABSENT(certificate_set_retrieve_function2)
ABSENT(certificate_set_retrieve_function3)
ABSENT(certificate_set_x509_key_mem)
ABSENT(certificate_set_x509_key_mem2)
ABSENT(certificate_set_x509_trust_mem)
ABSENT(cipher_get)
ABSENT(credentials_set)
ABSENT(deinit)
ABSENT(dh_params_deinit)
ABSENT(dh_params_import_pkcs3)
ABSENT(dh_params_init)
ABSENT(handshake)
ABSENT(init)
ABSENT(priority_deinit)
ABSENT(priority_init)
ABSENT(priority_set)
ABSENT(protocol_get_version)
ABSENT(psk_allocate_server_credentials)
ABSENT(psk_free_server_credentials)
ABSENT(psk_set_server_credentials_function)
ABSENT(record_check_pending)
ABSENT(record_get_direction)
ABSENT(record_recv)
ABSENT(record_send)
ABSENT(session_get_ptr)
ABSENT(session_set_ptr)
ABSENT(strerror)
ABSENT(transport_set_int2)
