/* Version of wafertier; WL_VERSION grows with every release. SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFERTIER_VERSION_H
#define WAFERTIER_VERSION_H

#define WAFERTIER_VERSION_MAJOR  0
#define WAFERTIER_VERSION_MINOR  1
#define WAFERTIER_VERSION_PATCH  0
#define WAFERTIER_VERSION_STRING "0.1.0"

#endif
