// Package wire is what the cloud stores have in common between their SDK and the network: a transport of their own, request bodies that can
// be taken away from it, what is known of an attempt that got no answer, and what statuses and headers mean wherever HTTP is spoken.
//
// It knows no SDK and no service: the codes of a service, the kinds of its credentials, and who signs what are the store's.
package wire
